// What a user meets first, through the public packages. What the stores do in depth is the conformance scenarios' matter.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ZLinkEmbeddedLocationStore, ZLinkEmbeddedRelocationStore } from '@zlink-systems/framework-locations-embedded';

const key = (value) => ({ value });

test('a Location Store writes, reads and scans', async () => {
  const store = new ZLinkEmbeddedLocationStore();
  const absent = await store.read(key('a'));
  assert.equal(absent.kind, 'missing');
  assert.ok(absent.storeNow instanceof Date);

  const written = await store.write({
    conditions: [{ kind: 'missing', key: key('a') }],
    mutations: [
      { kind: 'put', key: key('b'), bytes: Buffer.from('second') },
      { kind: 'put', key: key('a'), bytes: Buffer.from('first'), retentionMs: 60_000 },
      { kind: 'delete', key: key('c') },
    ],
  });
  assert.equal(written.kind, 'applied');
  assert.deepEqual(
    written.putVersions.map((put) => put.key.value),
    ['b', 'a'],
  );

  const { kind, value } = await store.read(key('a'));
  assert.equal(kind, 'found');
  assert.deepEqual(value.bytes, new Uint8Array(Buffer.from('first')));
  assert.deepEqual(value.version, written.putVersions[1].version);
  assert.equal(value.expiresAt.getTime(), written.storeNow.getTime() + 60_000);
  assert.ok(!('expiresAt' in (await store.read(key('b'))).value), 'absent, not undefined or null');

  const page = await store.scan({ prefix: '', limit: 1 });
  assert.equal(page.kind, 'page');
  assert.deepEqual(
    page.value.items.map((item) => item.key.value),
    ['a'],
  );
  const rest = await store.scan({ prefix: '', limit: 1, cursor: page.value.nextCursor });
  assert.deepEqual(
    rest.value.items.map((item) => item.key.value),
    ['b'],
  );
  assert.ok(!('nextCursor' in rest.value));
  assert.deepEqual(await store.scan({ prefix: 'other', limit: 1, cursor: page.value.nextCursor }), { kind: 'expired' });

  const again = await store.write({ conditions: [{ kind: 'missing', key: key('a') }], mutations: [] });
  assert.deepEqual(Object.keys(again), ['kind', 'storeNow']);
  assert.equal(again.kind, 'conflict');
  await store.dispose();
});

test('cursor and retention that are undefined count as absent', async () => {
  const store = new ZLinkEmbeddedLocationStore({
    keyPrefix: undefined,
    path: undefined,
    operationTimeoutMs: undefined,
  });
  const bytes = new Uint8Array(1);
  const put = { kind: 'put', key: key('a'), bytes, retentionMs: undefined };
  assert.equal((await store.write({ conditions: [], mutations: [put] })).kind, 'applied');
  assert.ok(!('expiresAt' in (await store.read(key('a'))).value));
  assert.equal((await store.scan({ prefix: '', limit: 5, cursor: undefined })).value.items.length, 1);
  await store.dispose();
});

test('a Relocation Store puts, reads, renews and deletes', async () => {
  const store = new ZLinkEmbeddedRelocationStore();
  const payload = Buffer.from('payload');
  const stored = await store.put(key('r'), payload, 60_000);
  assert.equal(stored.kind, 'stored');
  assert.equal(stored.expiresAt.getTime(), stored.storeNow.getTime() + 60_000);
  const found = await store.read(key('r'));
  assert.deepEqual(Object.keys(found), ['kind', 'bytes', 'expiresAt', 'storeNow']);
  assert.deepEqual(found.bytes, new Uint8Array(payload));
  assert.deepEqual(found.expiresAt, stored.expiresAt);
  assert.equal((await store.put(key('r'), payload, 1)).kind, 'alreadyStored');
  assert.equal((await store.put(key('r'), Buffer.from('other'), 1)).kind, 'conflict');
  assert.equal((await store.renew(key('r'), 120_000)).kind, 'renewed');
  assert.equal(await store.delete(key('r')), undefined);
  assert.equal(await store.delete(key('r')), undefined);
  assert.equal((await store.read(key('r'))).kind, 'missing');
  assert.equal((await store.renew(key('r'), 1)).kind, 'missing');
  await store.dispose();
});

test('every key and value comes back as it went in', async () => {
  const store = new ZLinkEmbeddedLocationStore();
  const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte);
  const keys = ['\0', 'é', '鍵', '\u{1F600}', '~', 'k'.repeat(1_024)];
  await store.write({ conditions: [], mutations: keys.map((name) => ({ kind: 'put', key: key(name), bytes })) });
  for (const name of keys) assert.deepEqual((await store.read(key(name))).value.bytes, bytes);
  const { value } = await store.scan({ prefix: '', limit: 100 });
  const inByteOrder = keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  assert.deepEqual(
    value.items.map((item) => item.key.value),
    inByteOrder,
  );
  await store.dispose();
});
