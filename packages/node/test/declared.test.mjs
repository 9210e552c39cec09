// What the scripts do that stores of every kind send to Redis: each key that one touches was declared, and all of them lie in
// one slot (F19). Redis Cluster asks for that, and so do servers that run scripts side by side.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { ZLinkRedisLocationStore, ZLinkRedisRelocationStore } from '@zlink-systems/framework-locations-redis';
import { Project } from '@zlink-systems/project-state';
import { createClient } from 'redis6';
import { until } from './support/proxy.mjs';
import { startRedis } from './support/redis.mjs';

const key = (value) => ({ value });
/** How many scripts there are that this work needs. */
const SCRIPTS = 18;
/** A store looks for what has expired every 15 s at the latest. */
const PATIENCE_MS = 60_000;
/** Names that look like hash tags, or like keys of an engine. */
const NAMES = ['plain', '{z}', '}{', '{', 'a:b', '\u{1f600}', '{p}:f'];
const put = (name, retentionMs) => ({ kind: 'put', key: key(name), bytes: Buffer.from(name), retentionMs });
const remove = (name) => ({ kind: 'delete', key: key(name) });

async function workOnRecords(where, gone) {
  const store = new ZLinkRedisLocationStore(where);
  const write = (mutations, conditions = []) => store.write({ mutations, conditions });
  for (const name of NAMES) await write([put(name)]);
  // What has expired is removed without anybody asking.
  await write(Array.from({ length: 100 }, (_, i) => put(`brief${i}`, 20)));
  await until(() => gone(`{${where.keyPrefix}}:*brief*`), PATIENCE_MS);
  const { putVersions } = await write(NAMES.map((name) => put(name)));
  await write(Array.from({ length: 300 }, (_, i) => put(`k${i}`, i % 2 ? 60_000 : undefined)));
  const [{ version }] = putVersions;
  const first = await store.scan({ prefix: '', limit: 10 });
  // What a scan has yet to see is replaced, deleted and expires.
  await Promise.all([
    ...NAMES.map((name) => store.read(key(name))),
    ...Array.from({ length: 40 }, (_, i) => write([put(`k${i}`, 20)])),
    ...Array.from({ length: 40 }, (_, i) => write([remove(`k${i + 40}`)])),
    write([put('{z}'), remove('}{')], [{ kind: 'version', key: key('plain'), expected: version }]),
    write([], [{ kind: 'missing', key: key('plain') }]),
  ]);
  for (let { nextCursor } = first.value; nextCursor !== undefined; ) {
    const page = await store.scan({ prefix: '', cursor: nextCursor, limit: 90 });
    nextCursor = page.value.nextCursor;
  }
  await until(async () => (await store.read(key('k0'))).kind === 'missing');
  for (let i = 0; i < 20; i++) await write([put('last', 1_000)]);
  await store.dispose();
}

async function workOnBlobs(where) {
  const blobs = new ZLinkRedisRelocationStore(where);
  for (const name of NAMES) {
    for (const size of name === 'plain' ? [0, 10, 1_500_000] : [10]) {
      const bytes = Buffer.alloc(size, 'x');
      await blobs.put(key(name), bytes, 60_000);
      await blobs.put(key(name), bytes, 60_000);
      await blobs.put(key(name), Buffer.alloc(size + 1, 'y'), 60_000);
      await blobs.read(key(name));
      await blobs.renew(key(name), 30_000);
      await blobs.delete(key(name));
    }
    await blobs.put(key(name), Buffer.alloc(200_000, 'z'), 20);
  }
  await until(async () => (await blobs.read(key('plain'))).kind === 'missing');
  await blobs.put(key('plain'), Buffer.alloc(10), 60_000);
  await blobs.dispose();
}

async function workOnAProject(url, gone) {
  const project = new Project({ url, workspace: 'w', project: 'p' });
  const [entries, locks] = [project.state.namespace('n'), project.locks()];
  const { version } = await entries.set('e', [1]);
  await entries.set('e', [2], { expectedVersion: version });
  await Promise.all(Array.from({ length: 300 }, (_, i) => entries.set(`short${i}`, i, { ttlSeconds: 1 })));
  await entries.get('e');
  await entries.delete('e');
  for (const namespace of [undefined, 'other']) {
    const lease = await locks.acquire('l', { namespace });
    await (await locks.attach(lease.id)).renew();
    const waits = Array.from({ length: 5 }, () => locks.withLock('l', { namespace, waitMs: 10_000 }, () => {}));
    const left = new AbortController();
    const leaver = locks.acquire('l', { namespace, waitMs: 10_000 }, left.signal);
    setTimeout(() => left.abort('enough'), 100);
    await assert.rejects(leaver, (said) => said === 'enough');
    await lease.release();
    await Promise.all(waits);
    await assert.rejects(lease.renew());
  }
  await until(async () => (await entries.get('short299')) === null);
  await entries.set('after', 1);
  await until(() => gone('*short*'), PATIENCE_MS);
  await project.dispose();
}

/** Words of a line of MONITOR. */
const wordsOf = (line) =>
  [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word]) =>
    word.replace(/\\(x[0-9a-f]{2}|.)/g, (_, code) =>
      code.length === 3
        ? String.fromCharCode(Number.parseInt(code.slice(1), 16))
        : ({ n: '\n', r: '\r', t: '\t', a: '\x07', b: '\b' }[code] ?? code),
    ),
  );

test('every key that a script of any store touches was declared, and all are in one slot', async (t) => {
  const server = await startRedis();
  const client = createClient({ url: server.url });
  const monitor = connect(server.port, '127.0.0.1');
  t.after(async () => {
    monitor.destroy();
    client.destroy();
    await server.stop();
  });
  await client.connect();
  let said = '';
  monitor.setEncoding('latin1').on('data', (data) => {
    said += data;
  });
  monitor.write('MONITOR\r\n');
  await until(() => said.startsWith('+OK'));
  const gone = async (keys) => (await client.keys(keys)).length === 0;
  await Promise.all([
    workOnRecords({ url: server.url, keyPrefix: 'p' }, gone),
    workOnRecords({ client, keyPrefix: 'c' }, gone),
    workOnBlobs({ url: server.url, keyPrefix: 'b' }),
    workOnBlobs({ client, keyPrefix: 'd' }),
    workOnAProject(server.url, gone),
  ]);
  await client.sendCommand(['ECHO', 'finished']);
  await until(() => said.includes('"finished"'));
  const lines = said.split('\r\n');
  monitor.destroy();

  const scripts = new Set();
  const touched = [];
  let declared;
  for (const line of lines) {
    const words = wordsOf(line);
    if (/^\+[\d.]+ \[\d+ lua\]/.test(line)) {
      touched.push({ declared, words });
    } else if (/^eval/i.test(words[0] ?? '')) {
      const [, text, count, ...rest] = words;
      declared = new Set(rest.slice(0, Number(count)));
      const tags = new Set([...declared].map((name) => /\{([^}]+)\}/.exec(name)?.[1]));
      assert.ok(tags.size === 1 && !tags.has(undefined), `not in one slot: ${[...declared]}`);
      if (/^[0-9a-f]{40}$/.test(text)) scripts.add(text);
    }
  }
  const names = [...new Set(touched.map(({ words: [name] }) => name.toLowerCase()))];
  const places = new Map();
  for (const [name, , flags, ...place] of await client.sendCommand(['COMMAND', 'INFO', ...names])) {
    assert.ok(!flags.includes('movablekeys'), `${name}: its first words do not say where its keys are`);
    places.set(name, place);
  }
  for (const { declared, words } of touched) {
    const [first, last, step] = places.get(words[0].toLowerCase());
    const end = last < 0 ? words.length + last : last;
    for (let at = first; first > 0 && at <= end; at += step) {
      assert.ok(declared.has(words[at]), `${words[at]} is not declared: ${words[0]}`);
    }
  }
  t.diagnostic(`${scripts.size} scripts called ${touched.length} commands`);
  assert.ok(scripts.size >= SCRIPTS, `only ${scripts.size} scripts were run`);
});
