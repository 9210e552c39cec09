// A process with operations under way is killed (kill -9), or calls process.exit: what it was told is there and whole, whoever
// looks next.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { ZLinkEmbeddedLocationStore, ZLinkEmbeddedRelocationStore } from '@zlink-systems/framework-locations-embedded';
import { ZLinkRedisLocationStore, ZLinkRedisRelocationStore } from '@zlink-systems/framework-locations-redis';
import { Project } from '@zlink-systems/project-state';
import { until } from './support/proxy.mjs';
import { startRedis } from './support/redis.mjs';
import { embedded, project as projectPackage, redis } from './support/scripts.mjs';

const CHAINS = 6;
const KEYS = 3;
const ENTRIES = 4;
const BLOB_BYTES = 300_000;

/** How the stores of a place are opened, here and in a program. */
const inFolder = (path) => ({
  open: () => [
    new ZLinkEmbeddedLocationStore({ path, keyPrefix: 'chains' }),
    new ZLinkEmbeddedRelocationStore({ path, keyPrefix: 'blobs' }),
    new Project({ url: `file:${path}`, workspace: 'w', project: 'p' }),
  ],
  source: `
    const { ZLinkEmbeddedLocationStore: Records, ZLinkEmbeddedRelocationStore: Blobs } = require(${JSON.stringify(embedded)});
    const [where, url] = [{ path: ${JSON.stringify(path)} }, ${JSON.stringify(`file:${path}`)}];`,
  /** The folder is free when the process has ended. */
  async left() {},
});
const onRedis = (server) => ({
  open: () => [
    new ZLinkRedisLocationStore({ url: server.url, keyPrefix: 'chains' }),
    new ZLinkRedisRelocationStore({ url: server.url, keyPrefix: 'blobs' }),
    new Project({ url: server.url, workspace: 'w', project: 'p' }),
  ],
  source: `
    const { ZLinkRedisLocationStore: Records, ZLinkRedisRelocationStore: Blobs } = require(${JSON.stringify(redis)});
    const url = ${JSON.stringify(server.url)};
    const where = { url };`,
  /** What the process had sent is done, and its connections are gone. */
  async left() {
    await until(async () => (await server.command('CLIENT', 'LIST')).match(/^id=/gm).length === 1);
  },
});

/**
 * Moves chains of keys on, each commit on condition of the versions before, and says what it does and what it is told. Other
 * operations are always under way beside that.
 */
const WRITER = (source) => `
  const { writeSync } = require('node:fs');
  const { Project } = require(${JSON.stringify(projectPackage)});
  ${source}
  const [round, exitsAfter] = process.argv.slice(1);
  const store = new Records({ ...where, keyPrefix: 'chains' });
  const blobs = new Blobs({ ...where, keyPrefix: 'blobs' });
  const project = new Project({ url, workspace: 'w', project: 'p' });
  const say = (...words) => writeSync(1, words.join(' ') + '\\n');
  let exits = () => {
    exits = () => {};
    if (exitsAfter !== undefined) setTimeout(() => process.exit(0), Number(exitsAfter));
  };
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
      exits();
    }
  }
  async function put() {
    for (let i = 0; ; i++) {
      const name = round + '/' + i;
      await blobs.put({ value: name }, Buffer.alloc(${BLOB_BYTES}, name), 3_600_000);
      say('blob', name);
    }
  }
  const forever = async (work) => { for (;;) { await work(); await new Promise(setImmediate); } };
  for (let number = 0; number < ${CHAINS}; number++) chain(number);
  put();
  for (let lane = 0; lane < ${ENTRIES}; lane++) {
    forever(() => store.scan({ prefix: '', limit: 100 }));
    forever(() => store.read(keysOf(lane)[0]));
    let number = 0;
    forever(async () => {
      say('set', lane, ++number);
      await project.state.namespace('n').set('e' + lane, { round, number });
      say('was-set', lane, number);
    });
    forever(() => project.locks().withLock('lock/' + round, { waitMs: 10_000 }, ({ fencingToken }) => say('token', fencingToken)));
  }`;

const ends = {
  killed: { args: () => [], end: (child) => child.kill('SIGKILL'), status: [null, 'SIGKILL'] },
  'ended by process.exit': { args: () => [Math.random() * 80], end() {}, status: [0, null] },
};
/** Far more than a process needs that does not wait for its operations. */
const PATIENCE_MS = 30_000;

/** Lets the writer work in a place and end, over and over; after each end, judges what is there by what it was told. */
async function work(t, place, { args, end, status }, rounds) {
  const chains = Array.from({ length: CHAINS }, () => ({ at: 0, versions: undefined, begun: 0 }));
  const blobs = [];
  /** What lies in each entry of state, and what may, since nobody was told. */
  const entries = Array.from({ length: ENTRIES }, () => [undefined]);
  const issued = new Set();
  let [acknowledged, clock, token] = [0, 0, 0];

  const hear = (line, round) => {
    const [what, subject, at, time, ...versions] = line.split(' ');
    const chain = chains[subject];
    if (what === 'begin') {
      chain.begun = Number(at);
    } else if (what === 'blob') {
      blobs.push(subject);
    } else if (what === 'set') {
      entries[subject].push(`${round}/${at}`);
    } else if (what === 'was-set') {
      entries[subject] = [`${round}/${at}`];
    } else if (what === 'token') {
      assert.ok(Number(subject) > token, `the token ${subject} came after ${token}`);
      token = Number(subject);
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

  for (let round = 0; round < rounds; round++) {
    const words = ['--eval', WRITER(place.source), String(round), ...args().map(String)];
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'] });
    const [heard, errors] = [[], []];
    child.stderr.on('data', (data) => errors.push(data));
    const ended = once(child, 'close');
    let rest = '';
    const first = new Promise((resolve) => {
      child.stdout.setEncoding('utf8').on('data', (data) => {
        const lines = (rest + data).split('\n');
        rest = lines.pop();
        heard.push(...lines);
        if (lines.some((line) => line.startsWith('done'))) resolve();
      });
    });
    await Promise.race([first, ended]);
    await pause(Math.random() * 80);
    end(child);
    const late = setTimeout(() => child.kill('SIGABRT'), PATIENCE_MS);
    const how = await ended;
    clearTimeout(late);
    assert.deepEqual([...how, Buffer.concat(errors).toString()], [...status, '']);
    for (const line of heard) hear(line, round);
    await place.left();

    const [store, payloads, project] = place.open();
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
    for (const [lane, maybe] of entries.entries()) {
      const entry = await project.state.namespace('n').get(`e${lane}`);
      const there = entry === null ? undefined : `${entry.value.round}/${entry.value.number}`;
      assert.ok(maybe.includes(there), `${there} lies in entry ${lane}, where ${maybe} may`);
      entries[lane] = [there];
    }
    await Promise.all([store, payloads, project].map((opened) => opened.dispose()));
    await place.left();
  }
  assert.ok(acknowledged >= rounds && blobs.length > 0 && token > 0);
  t.diagnostic(`${acknowledged} commits and ${blobs.length} blobs were acknowledged`);
}

for (const [how, inFolders, onServers] of [
  ['killed', 25, 10],
  ['ended by process.exit', 10, 10],
]) {
  test(`${how} ${inFolders} times while it writes to a folder, nothing that was acknowledged is lost or torn`, async (t) => {
    const path = mkdtempSync(join(tmpdir(), 'zlink-crash-'));
    t.after(() => rmSync(path, { recursive: true, force: true }));
    await work(t, inFolder(path), ends[how], inFolders);
  });

  test(`${how} ${onServers} times while it writes to Redis, nothing that was acknowledged is lost or torn`, async (t) => {
    const server = await startRedis();
    t.after(() => server.stop());
    await work(t, onRedis(server), ends[how], onServers);
  });
}
