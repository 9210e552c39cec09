// A process that writes to a folder is killed (kill -9): what it was told is there and whole, whoever opens the folder next.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { ZLinkEmbeddedLocationStore, ZLinkEmbeddedRelocationStore } from '@zlink-systems/framework-locations-embedded';
import { embedded } from './support/scripts.mjs';

const ROUNDS = 25;
const CHAINS = 6;
const KEYS = 3;
const BLOB_BYTES = 300_000;

/** Moves chains of keys on, each commit on condition of the versions before, and says what it does and what it is told. */
const WRITER = `
  const { writeSync } = require('node:fs');
  const { ZLinkEmbeddedLocationStore, ZLinkEmbeddedRelocationStore } = require(${JSON.stringify(embedded)});
  const [path, round] = process.argv.slice(1);
  const store = new ZLinkEmbeddedLocationStore({ path, keyPrefix: 'chains' });
  const blobs = new ZLinkEmbeddedRelocationStore({ path, keyPrefix: 'blobs' });
  const say = (...words) => writeSync(1, words.join(' ') + '\\n');
  const keysOf = (chain) => Array.from({ length: ${KEYS} }, (_, i) => ({ value: 'chain/' + chain + '/' + i }));
  async function chain(number) {
    const keys = keysOf(number);
    let seen = await Promise.all(keys.map((key) => store.read(key)));
    let at = seen[0].kind === 'found' ? Number(Buffer.from(seen[0].value.bytes).toString().trim()) : 0;
    let versions = seen.map((found) => found.value?.version);
    for (;;) {
      at++;
      say('begin', number, at);
      const result = await store.write({
        conditions: keys.map((key, i) => versions[i]
          ? { kind: 'version', key, expected: versions[i] } : { kind: 'missing', key }),
        mutations: keys.map((key) => ({ kind: 'put', key, bytes: Buffer.from(String(at).padEnd(700)) })),
      });
      if (result.kind !== 'applied') throw new Error('a conflict in a chain of one writer');
      versions = result.putVersions.map(({ version }) => version);
      say('done', number, at, result.storeNow.getTime(), ...versions.map(({ value }) => value));
    }
  }
  async function put() {
    for (let i = 0; ; i++) {
      const name = round + '/' + i;
      await blobs.put({ value: name }, Buffer.alloc(${BLOB_BYTES}, name), 3_600_000);
      say('blob', name);
    }
  }
  for (let number = 0; number < ${CHAINS}; number++) chain(number);
  put();`;

test(`killed ${ROUNDS} times while it writes to a folder, nothing that was acknowledged is lost or torn`, async (t) => {
  const path = mkdtempSync(join(tmpdir(), 'zlink-crash-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  const chains = Array.from({ length: CHAINS }, () => ({ at: 0, versions: undefined, begun: 0 }));
  const blobs = [];
  const issued = new Set();
  let acknowledged = 0;
  let clock = 0;

  const hear = (line) => {
    const [what, subject, at, time, ...versions] = line.split(' ');
    const chain = chains[subject];
    if (what === 'begin') {
      chain.begun = Number(at);
    } else if (what === 'blob') {
      blobs.push(subject);
    } else {
      acknowledged++;
      issue(versions);
      clock = Math.max(clock, Number(time));
      Object.assign(chain, { at: Number(at), versions });
    }
  };
  const issue = (versions) => {
    for (const version of versions) {
      assert.ok(!issued.has(version), `the version ${version} was issued twice`);
      issued.add(version);
    }
  };

  for (let round = 0; round < ROUNDS; round++) {
    const child = spawn(process.execPath, ['--eval', WRITER, path, String(round)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(child, 'close');
    let rest = '';
    const first = new Promise((resolve) => {
      child.stdout.setEncoding('utf8').on('data', (data) => {
        const lines = (rest + data).split('\n');
        rest = lines.pop();
        lines.forEach(hear);
        if (lines.some((line) => line.startsWith('done'))) resolve();
      });
    });
    await Promise.race([first, ended]);
    await pause(Math.random() * 80);
    child.kill('SIGKILL');
    const [, signal] = await ended;
    assert.equal(signal, 'SIGKILL', 'the writer ended by itself');

    const store = new ZLinkEmbeddedLocationStore({ path, keyPrefix: 'chains' });
    const payloads = new ZLinkEmbeddedRelocationStore({ path, keyPrefix: 'blobs' });
    const { value: page } = await store.scan({ prefix: '', limit: 1_000 });
    assert.ok(page.storeNow.getTime() >= clock, 'time does not run backwards');
    for (const [number, chain] of chains.entries()) {
      const items = page.items.filter(({ key }) => key.value.startsWith(`chain/${number}/`));
      const at = items.map(({ value }) => Number(Buffer.from(value.bytes).toString().trim()));
      assert.equal(new Set(at).size, items.length === 0 ? 0 : 1, `chain ${number} is torn: ${at}`);
      assert.ok(items.every(({ value }) => value.bytes.length === 700));
      const versions = items.map(({ value }) => value.version.value);
      const where = at[0] ?? 0;
      if (where === chain.at) {
        assert.deepEqual(versions, chain.versions ?? []);
      } else {
        // The commit that was under way came to be.
        assert.deepEqual([where, items.length], [chain.begun, KEYS], `chain ${number} was told ${chain.at}`);
        issue(versions);
        Object.assign(chain, { at: where, versions });
      }
    }
    for (const name of blobs) {
      const read = await payloads.read({ value: name });
      assert.ok(read.kind === 'found' && Buffer.alloc(BLOB_BYTES, name).equals(read.bytes), `the blob ${name}`);
    }
    await store.dispose();
    await payloads.dispose();
  }
  assert.ok(acknowledged >= ROUNDS && blobs.length > 0);
  t.diagnostic(`${acknowledged} commits and ${blobs.length} blobs were acknowledged`);
});
