// Packs what is published into `packed/` (or --out): every package, and one package per platform whose library was built.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { out: { type: 'string', default: 'packed' } } });
const here = fileURLToPath(new URL('..', import.meta.url));
const out = resolve(here, values.out);
const read = (...path) => JSON.parse(readFileSync(join(here, ...path), 'utf8'));
const native = read('store-native', 'package.json');
const platforms = read('store-native', 'platforms.json');

const stage = mkdtempSync(join(tmpdir(), 'zlink-pack-'));
mkdirSync(out, { recursive: true });
try {
  for (const name of read('package.json').workspaces) {
    const manifest = read(name, 'package.json');
    if (manifest.name === native.name) {
      // Only published manifests name the platforms: in this checkout these packages do not exist.
      manifest.optionalDependencies = Object.fromEntries(
        platforms.map((platform) => [`${native.name}-${platform.name}`, native.version]),
      );
    }
    pack(name, manifest, (folder) => {
      for (const file of [...manifest.files.filter((file) => !file.startsWith('!')), 'README.md']) {
        cpSync(join(here, name, file), join(folder, file), { recursive: true });
      }
    });
  }
  for (const platform of platforms) {
    const library = `zlink-store.${platform.name}.node`;
    if (!existsSync(join(here, 'store-native', library))) continue;
    const manifest = {
      name: `${native.name}-${platform.name}`,
      version: native.version,
      description: `The native library of ${native.name} for ${platform.name}`,
      license: native.license,
      main: library,
      files: [library],
      os: [platform.os],
      cpu: [platform.cpu],
      ...(platform.libc && { libc: [platform.libc] }),
      engines: native.engines,
    };
    pack(`store-native-${platform.name}`, manifest, (folder) => {
      cpSync(join(here, 'store-native', library), join(folder, library));
    });
  }
} finally {
  rmSync(stage, { recursive: true });
}

function pack(name, manifest, fill) {
  const folder = join(stage, name);
  mkdirSync(folder);
  fill(folder);
  cpSync(join(here, '..', '..', 'LICENSE'), join(folder, 'LICENSE'));
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  const npm = ['pack', '--silent', '--pack-destination', out];
  console.log(join(out, execFileSync('npm', npm, { cwd: folder, encoding: 'utf8' }).trim()));
}
