// There is no Swift compiler where this is tested: the names that the hand-written layer uses must at least be there in what is generated.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const generated = join(here, 'Sources/ZlinkStoreNative/zlink_store_uniffi.swift');
const written = readdirSync(join(here, 'Sources/ZlinkStore'))
  .map((file) => readFileSync(join(here, 'Sources/ZlinkStore', file), 'utf8'))
  .join('\n')
  .replace(/\/\/.*$/gm, '');

/** What is between the parenthesis that was just opened and its partner. */
function argumentsAt(text, start) {
  let depth = 1;
  let end = start;
  while (depth > 0) depth += { '(': 1, ')': -1 }[text[end++]] ?? 0;
  return text.slice(start, end - 1);
}

const labels = (text) => [...text.matchAll(/(?:^|,)\s*(\w+):/g)].map(([, label]) => label);

test('the sources are generated where Package.swift looks for them', () => {
  assert.ok(existsSync(generated), 'make build-swift');
  const map = readFileSync(join(here, 'Sources/zlink_store_uniffiFFI/module.modulemap'), 'utf8');
  assert.match(map, /module zlink_store_uniffiFFI/);
  assert.match(map, /link "zlink_store_uniffi"/);
  assert.match(readFileSync(join(here, 'Sources/zlink_store_uniffiFFI/zlink_store_uniffiFFI.h'), 'utf8'), /RustBuffer/);
});

test('each type that the layer names is generated', () => {
  const native = readFileSync(generated, 'utf8');
  const types = new Set([
    ...[...written.matchAll(/ZlinkStoreNative\.(\w+)/g)].map(([, type]) => type),
    ...[...written.matchAll(/extension (\w+): NativeOperation/g)].map(([, type]) => type),
    'StoreOptions',
    'ProjectOptions',
  ]);
  for (const type of types) assert.match(native, new RegExp(`(class|struct|enum) ${type}\\b`), type);
  const operations = [...native.matchAll(/open class (\w+Operation):/g)].map(([, type]) => type);
  for (const type of operations) assert.ok(types.has(type), `${type} is no NativeOperation`);
});

test('each function that the layer calls is generated, with these arguments', () => {
  const native = readFileSync(generated, 'utf8');
  const functions = [...native.matchAll(/func `?(\w+)`?\(/g)].map((found) => ({
    name: found[1],
    labels: labels(argumentsAt(native, found.index + found[0].length)),
  }));
  const calls = [...written.matchAll(/(?:\bnative|ZlinkStoreNative\.\w+|operation|\$0)\.(\w+)\(/g)];
  assert.ok(calls.length > 30);
  for (const call of calls) {
    const used = labels(argumentsAt(written, call.index + call[0].length));
    const meant = functions.some(({ name, labels }) => name === call[1] && labels.join() === used.join());
    assert.ok(meant, `${call[1]}(${used.map((label) => `${label}:`).join('')})`);
  }
});

test('each case that the layer matches is generated', () => {
  const native = readFileSync(generated, 'utf8');
  for (const name of ['page', 'expired', 'lost', 'Cancelled']) assert.match(native, new RegExp(`case \`?${name}\\b`), name);
  for (const [, name] of written.matchAll(/StoreError\.([A-Z]\w+)/g)) assert.match(native, new RegExp(`case ${name}\\b`), name);
});
