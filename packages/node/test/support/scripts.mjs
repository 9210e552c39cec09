// Small programs in processes of their own.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** Where an import of this checkout's packages finds them, from any folder. */
export const embedded = require.resolve('@zlink-systems/framework-locations-embedded');
export const redis = require.resolve('@zlink-systems/framework-locations-redis');
export const native = require.resolve('@zlink-systems/store-native');
export const project = require.resolve('@zlink-systems/project-state');

/** Runs a program, under another one if that is said; gives back how it ended, what it said, and how long it took. */
export function run(source, { module = true, ms = 60_000, args = [], env = {}, under = [] } = {}) {
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const how = module ? ['--input-type=module'] : ['--input-type=commonjs'];
    const [program, ...words] = [...under, process.execPath, ...args, ...how, '--eval', source];
    const child = spawn(program, words, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (data) => {
      stdout += data;
    });
    child.stderr.on('data', (data) => {
      stderr += data;
    });
    const timer = setTimeout(() => child.kill('SIGKILL'), ms);
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, stdout, stderr, took: performance.now() - began });
    });
  });
}
