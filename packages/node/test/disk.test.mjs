// What a process in Node.js is told is on the disk before it is told; and a disk that takes no more.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ZLinkEmbeddedLocationStore, ZLinkEmbeddedRelocationStore } from '@zlink-systems/framework-locations-embedded';
import { Project } from '@zlink-systems/project-state';
import { embedded, project as projectPackage, run } from './support/scripts.mjs';
import { trace } from './support/trace.mjs';

function folderFor(t) {
  const folder = mkdtempSync(join(tmpdir(), 'zlink-disk-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** What both programs work on: one folder with a store of each kind. */
const STORES = (path) => `
  const { writeSync } = require('node:fs');
  const { ZLinkEmbeddedLocationStore, ZLinkEmbeddedRelocationStore } = require(${JSON.stringify(embedded)});
  const { Project } = require(${JSON.stringify(projectPackage)});
  const path = ${JSON.stringify(path)};
  const records = new ZLinkEmbeddedLocationStore({ path, operationTimeoutMs: 60_000 });
  const blobs = new ZLinkEmbeddedRelocationStore({ path, operationTimeoutMs: 60_000 });
  const project = new Project({ url: 'file:' + path, workspace: 'w', project: 'p', operationTimeoutMs: 60_000 });
  const entries = project.state.namespace('n');
  const close = () => Promise.all([records, blobs, project].map((store) => store.dispose()));
  const say = (...words) => writeSync(1, words.join(' ') + '\\n');
  const put = (value, text) => records.write({
    conditions: [], mutations: [{ kind: 'put', key: { value }, bytes: Buffer.from(text) }] });`;

const ROUNDS = 20;
const WRITERS = 4;

/** Does each kind of thing that must last, and says when it begins and when it is told; what is written carries a name of its own. */
const WRITER = (path) => `${STORES(path)}
  const soon = 60_000;
  const kinds = {
    record: { work: (name) => put(name, name) },
    deletion: {
      prepare: (name) => put(name, name),
      work: (value) => records.write({ conditions: [], mutations: [{ kind: 'delete', key: { value } }] }),
    },
    entry: { work: (name) => entries.set(name, name) },
    lease: { work: (name) => project.locks().acquire(name) },
    small: { work: (value) => blobs.put({ value }, Buffer.from(value), soon) },
    large: { work: (value) => blobs.put({ value }, Buffer.alloc(300_000, value), soon) },
  };
  const loop = async (kind, writer) => {
    for (let round = 0; round < ${ROUNDS}; round++) {
      const name = kind + '-' + writer + '-' + round + '.';
      await kinds[kind].prepare?.(name);
      say('begin', name);
      await kinds[kind].work(name);
      say('done', name);
    }
  };
  const writers = Array.from({ length: ${WRITERS} }, (_, writer) => writer);
  Promise.all(Object.keys(kinds).flatMap((kind) => writers.map((writer) => loop(kind, writer)))).then(close);`;

test('nothing is acknowledged before its sync', async (t) => {
  const folder = folderFor(t);
  const calls = 'write,pwrite64,writev,fsync,fdatasync';
  const end = await trace(WRITER(join(folder, 'store')), calls, join(folder, 'trace'));
  assert.deepEqual([end.code, end.signal, end.stderr], [0, null, '']);
  const syncs = end.calls.filter(({ name, result }) => name.endsWith('sync') && result === 0);
  const writes = end.calls.filter(({ name, path }) => name.includes('write') && /\.jnl$|\/blobs\//.test(path));
  const acknowledged = {};
  const begun = new Map();
  for (const call of end.calls.filter(({ name, descriptor }) => name === 'write' && descriptor === 1)) {
    const [, what, name, kind] = /"(begin|done) ((\w+)-\d+-\d+\.)/.exec(call.said) ?? [];
    if (what === 'begin') begun.set(name, call.ended);
    if (what !== 'done') continue;
    // Everything that was written of it since it began, and no more than that was said to be there.
    const of = writes.filter(({ said, began }) => began > begun.get(name) && began < call.began && said.includes(name));
    assert.ok(
      of.some(({ path }) => path.endsWith('.jnl')),
      `${name} was acknowledged before it was written`,
    );
    assert.ok(kind !== 'large' || of.some(({ path }) => path.includes('/blobs/')), `${name} has no file`);
    for (const { path, ended } of of) {
      const synced = syncs.some((sync) => sync.path === path && sync.began > ended && sync.ended < call.began);
      assert.ok(synced, `${name} was acknowledged before ${path} was synced`);
    }
    acknowledged[kind] = (acknowledged[kind] ?? 0) + 1;
  }
  assert.deepEqual(
    acknowledged,
    Object.fromEntries(
      ['record', 'deletion', 'entry', 'lease', 'small', 'large'].map((kind) => [kind, ROUNDS * WRITERS]),
    ),
  );
});

/** A new journal fits, and one that grows beyond does not. */
const LONGEST_FILE = 64 << 20;
const REFUSALS = 10;
const AFTERWARDS = 10;

/**
 * Fills the journal until the operating system takes no more of it, and after some refusals makes room. What is there is read
 * after each refusal: the last that was acknowledged, or one since then of which nobody knows.
 */
const FILLER = (path) => `${STORES(path)}
  const assert = require('node:assert');
  const { execFileSync } = require('node:child_process');
  const limit = (bytes) => execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=' + bytes + ':']);
  const wide = (number, bytes) => String(number).padEnd(bytes);
  const kinds = [
    {
      write: (number) => put('k', wide(number, 1_000_000)),
      read: async () => Buffer.from((await records.read({ value: 'k' })).value.bytes).toString(),
    },
    {
      write: (number) => entries.set('e', wide(number, 30_000)),
      read: async () => (await entries.get('e')).value,
    },
    {
      write: (number) => blobs.put({ value: 'b' + number }, Buffer.from(wide(number, 60_000)), 3_600_000),
      read: async (number) => Buffer.from((await blobs.read({ value: 'b' + number })).bytes).toString(),
    },
  ].map((kind) => ({ ...kind, acknowledged: [], maybe: [] }));
  const refusals = [];
  const attempt = async (kind, number) => {
    try {
      await kind.write(number);
      kind.acknowledged.push(number);
      kind.maybe = [];
    } catch ({ code, retryable, outcome }) {
      refusals.push({ code, retryable, outcome });
      if (outcome === 'unknown') kind.maybe.push(number);
    }
    const last = kind.acknowledged.at(-1);
    const there = Number((await kind.read(last)).trim());
    assert.ok([last, ...kind.maybe].includes(there), there + ' is there, and ' + last + ' was acknowledged');
    return there === number && last === number;
  };
  const round = async (number) => {
    for (const kind of kinds) await attempt(kind, number);
  };
  (async () => {
    let number = 0;
    await round(number);
    limit(${LONGEST_FILE});
    while (refusals.length < ${REFUSALS} && number < 200) await round(++number);
    const met = refusals.length;
    limit('unlimited');
    const deadline = Date.now() + 60_000;
    for (const kind of kinds) {
      for (number++; !(await attempt(kind, number)); number++) {
        assert.ok(Date.now() < deadline, 'the folder is not opened again');
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
    const again = refusals.length;
    for (const end = number + ${AFTERWARDS}; number < end; ) await round(++number);
    assert.equal(refusals.length, again, 'refused again once there was room');
    await close();
    say(JSON.stringify({ met, refusals, acknowledged: kinds.map(({ acknowledged }) => acknowledged) }));
  })();`;

test('a full disk refuses writes, loses nothing, and is written to again once there is room', async (t) => {
  const path = join(folderFor(t), 'store');
  const end = await run(FILLER(path), { module: false, ms: 180_000 });
  assert.deepEqual([end.code, end.signal, end.stderr], [0, null, '']);
  const { met, refusals, acknowledged } = JSON.parse(end.stdout);
  assert.ok(met >= REFUSALS, `the limit was met ${met} times`);
  for (const { code, retryable } of refusals) {
    assert.ok(['ZLINK_STORE_OUT_OF_MEMORY', 'ZLINK_STORE_UNAVAILABLE'].includes(code) && retryable, code);
  }
  assert.ok(refusals.some(({ code }) => code === 'ZLINK_STORE_OUT_OF_MEMORY'));
  t.diagnostic(`${acknowledged.flat().length} writes were acknowledged, ${refusals.length} refused`);
  // Who opens the folder next finds the last of what is replaced, and all of what is not.
  const [records, entries, blobs] = acknowledged;
  const locations = new ZLinkEmbeddedLocationStore({ path });
  const relocations = new ZLinkEmbeddedRelocationStore({ path });
  const project = new Project({ url: `file:${path}`, workspace: 'w', project: 'p' });
  const numberIn = (bytes) => Number(Buffer.from(bytes).toString());
  assert.equal(numberIn((await locations.read({ value: 'k' })).value.bytes), records.at(-1));
  assert.equal(Number((await project.state.namespace('n').get('e')).value), entries.at(-1));
  for (const number of blobs) {
    assert.equal(numberIn((await relocations.read({ value: `b${number}` })).bytes), number);
  }
  await Promise.all([locations, relocations, project].map((store) => store.dispose()));
});
