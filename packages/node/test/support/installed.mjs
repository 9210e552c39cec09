// The packages as a user has them: packed, and installed into an empty project. Nothing is fetched.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('../..', import.meta.url));
const require = createRequire(import.meta.url);

/** Packs the packages of this checkout; gives back the files. */
export function pack(folder) {
  execFileSync(process.execPath, [join(here, 'scripts', 'pack.mjs'), '--out', folder], { stdio: 'pipe' });
  return readdirSync(folder).map((file) => join(folder, file));
}

/** A project in a folder of its own with the given packed files installed. */
export function project(files) {
  const folder = mkdtempSync(join(tmpdir(), 'zlink-project-'));
  writeFileSync(join(folder, 'package.json'), '{ "name": "project", "private": true }\n');
  const npm = ['install', '--offline', '--no-audit', '--no-fund', '--silent', ...files];
  execFileSync('npm', npm, { cwd: folder, stdio: 'pipe' });
  return {
    folder,
    write(name, text) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    },
    /** Makes a package of this checkout's node_modules known to the project, perhaps under another name. */
    link(name, as = name) {
      const from = join(here, 'node_modules', name);
      const to = join(folder, 'node_modules', as);
      mkdirSync(dirname(to), { recursive: true });
      rmSync(to, { recursive: true, force: true });
      symlinkSync(from, to);
    },
    unlink(name) {
      rmSync(join(folder, 'node_modules', name), { recursive: true, force: true });
    },
    run(...args) {
      return execFileSync(process.execPath, args, { cwd: folder, encoding: 'utf8', stdio: 'pipe', timeout: 300_000 });
    },
    remove() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The compilers to check declarations with: the newest, and the last of the generation before. */
export const compilers = ['typescript', 'typescript5'].map((name) => ({
  version: require(`${name}/package.json`).version,
  path: join(dirname(require.resolve(`${name}/package.json`)), 'bin', 'tsc'),
}));
