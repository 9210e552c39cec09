// Builds the native library and puts it where store-native finds it.
//
// --profile dev|fast|release   how much the compiler does; release is what is published, and what is built if nothing is said
// --target TRIPLE              for another platform than this machine's
// --zig, --glibc VERSION       links with Zig (cargo-zigbuild), against the oldest glibc that it shall run with
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, renameSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    profile: { type: 'string', default: 'release' },
    target: { type: 'string' },
    zig: { type: 'boolean', default: false },
    glibc: { type: 'string' },
  },
});
const here = fileURLToPath(new URL('..', import.meta.url));
const root = join(here, '..', '..');
const platforms = createRequire(import.meta.url)('../store-native/platforms.json');

function cargo(...args) {
  const stdio = ['ignore', 'pipe', 'inherit'];
  const { status, stdout } = spawnSync('cargo', args, { cwd: root, stdio, encoding: 'utf8', maxBuffer: Infinity });
  if (status !== 0) process.exit(status ?? 1);
  return stdout;
}

const host = /^host: (.+)$/m.exec(execFileSync('rustc', ['-vV'], { encoding: 'utf8' }))?.[1];
const target = values.target ?? host;
const platform = platforms.find((candidate) => candidate.target === target);
if (platform === undefined) throw new Error(`store-native/platforms.json has no platform with the target ${target}`);

const format = '--message-format=json-render-diagnostics';
// What else shall be compiled in the same run, so that what they share is compiled once.
const packages = (process.env.ZLINK_CARGO_PACKAGES ?? '-p zlink-store-node').split(' ');
const args = [values.zig ? 'zigbuild' : 'build', ...packages, '--profile', values.profile, format];
if (values.target !== undefined) args.push('--target', [target, values.glibc].filter(Boolean).join('.'));
const library = cargo(...args)
  .split('\n')
  .filter((line) => line.startsWith('{'))
  .map((line) => JSON.parse(line))
  .find((message) => message.reason === 'compiler-artifact' && message.target.name === 'zlink_store_node')
  .filenames.find((name) => /\.(so|dylib|dll)$/.test(name));

// By a new file under a new name: a process may have the old one mapped.
const place = join(here, 'store-native', `zlink-store.${platform.name}.node`);
copyFileSync(library, `${place}.new`);
renameSync(`${place}.new`, place);
console.log(`built ${platform.name} (${values.profile})`);
