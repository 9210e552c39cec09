// A Redis client that the user owns (F35).
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ZLinkRedisLocationStore, ZLinkRedisRelocationStore } from '@zlink-systems/framework-locations-redis';
import * as redis5 from 'redis5';
import * as redis6 from 'redis6';
import { startProxy, until } from './support/proxy.mjs';
import { startRedis, startRedisAt } from './support/redis.mjs';

const key = (value) => ({ value });
const put = (name, bytes) => ({ conditions: [], mutations: [{ kind: 'put', key: key(name), bytes }] });
const every = Uint8Array.from({ length: 256 }, (_, byte) => byte);

let server;
before(async () => {
  server = await startRedis();
});
after(() => server.stop());

const { RESP_TYPES } = redis5;
/** Clients of every make and mode that a store must work with, and look the same through. */
const CLIENTS = {
  'node-redis 5, RESP2': (url) => redis5.createClient({ url }),
  'node-redis 5, RESP3': (url) => redis5.createClient({ url, RESP: 3 }),
  'node-redis 6, RESP2': (url) => redis6.createClient({ url, RESP: 2 }),
  'node-redis 6, RESP3': (url) => redis6.createClient({ url }),
  'with a type mapping of its own': (url) =>
    redis5.createClient({ url, commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } } }),
  'behind withTypeMapping': (url) => redis6.createClient({ url }).withTypeMapping({ [RESP_TYPES.NUMBER]: String }),
  'behind withAbortSignal': (url) => redis6.createClient({ url }).withAbortSignal(new AbortController().signal),
  'on database 3': (url) => redis6.createClient({ url, database: 3 }),
};

for (const [name, make] of Object.entries(CLIENTS)) {
  describe(`a client: ${name}`, () => {
    let client;
    let locations;
    let blobs;
    before(() => {
      client = make(server.url);
      locations = new ZLinkRedisLocationStore({ client, keyPrefix: `locations ${name}` });
      blobs = new ZLinkRedisRelocationStore({ client, keyPrefix: `blobs ${name}`, operationTimeoutMs: 30_000 });
    });
    after(() => client.close());

    test('is connected when it is needed, and not before', async () => {
      assert.equal(client.isOpen, false);
      const kinds = await Promise.all([1, 2, 3].map(async () => (await locations.read(key('absent'))).kind));
      assert.deepEqual(kinds, ['missing', 'missing', 'missing']);
      assert.equal(client.isOpen, true);
    });

    test('carries reads, writes and scans with every byte as it is', async () => {
      const names = ['\0', 'é', '\u{1F600}', 'plain'];
      const written = await locations.write({
        conditions: [{ kind: 'missing', key: key('plain') }],
        mutations: names.map((value) => ({ kind: 'put', key: key(value), bytes: every, retentionMs: 60_000 })),
      });
      assert.equal(written.kind, 'applied');
      const { value } = await locations.read(key('plain'));
      assert.deepEqual(value.bytes, every);
      assert.deepEqual(value.version, written.putVersions[3].version);
      assert.equal(value.expiresAt - written.storeNow, 60_000);
      const swapped = { kind: 'version', key: key('plain'), expected: value.version };
      const again = { conditions: [swapped], mutations: [{ kind: 'delete', key: key('plain') }] };
      assert.equal((await locations.write(again)).kind, 'applied');
      assert.equal((await locations.write(again)).kind, 'conflict');
      const seen = [];
      let cursor;
      do {
        const page = await locations.scan({ prefix: '', limit: 2, cursor });
        assert.equal(page.kind, 'page');
        for (const item of page.value.items) seen.push([item.key.value, item.value.bytes]);
        cursor = page.value.nextCursor;
      } while (cursor !== undefined);
      const expected = names.slice(0, 3).toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      assert.deepEqual(
        seen,
        expected.map((value) => [value, every]),
      );
    });

    test('carries blobs', async () => {
      for (const size of [0, 256, 3 * 2 ** 20]) {
        const payload = new Uint8Array(size).map((_, i) => i * 7);
        assert.equal((await blobs.put(key(`b${size}`), payload, 60_000)).kind, 'stored');
        assert.equal((await blobs.put(key(`b${size}`), payload, 60_000)).kind, 'alreadyStored');
        assert.ok(Buffer.from((await blobs.read(key(`b${size}`))).bytes).equals(payload));
      }
      assert.equal((await blobs.renew(key('b256'), 90_000)).kind, 'renewed');
      await blobs.delete(key('b256'));
      assert.equal((await blobs.read(key('b256'))).kind, 'missing');
    });

    test('keeps its own MULTI and WATCH while the store is busy', async () => {
      const own = `own ${name}`;
      await client.set(own, '1');
      await client.watch(own);
      await Promise.all(Array.from({ length: 50 }, (_, i) => locations.write(put(`busy-${i}`, every))));
      const replies = await client.multi().incr(own).incr(own).exec();
      assert.deepEqual(replies.map(Number), [2, 3]);
      await client.watch(own);
      await server.command('SELECT', name.includes('database') ? 3 : 0);
      const other = await client.duplicate().connect();
      await other.incr(own);
      await other.close();
      await locations.read(key('busy-1'));
      await assert.rejects(client.multi().incr(own).exec(), (error) => error.constructor.name === 'WatchError');
    });

    test('is never closed by a store, and stays as it was', async () => {
      await locations.dispose();
      await blobs.dispose();
      assert.equal(client.isOpen, true);
      assert.equal(String(await client.get(`own ${name}`)), '4');
      await until(() => client.listenerCount('error') === 0);
      await assert.rejects(locations.read(key('a')), { code: 'ZLINK_STORE_CLOSED' });
    });
  });
}

describe('a client that will not do', () => {
  const options = (client) => ({ client, keyPrefix: 'p' });

  test('is refused at construction, with what to do instead', async () => {
    const url = server.url;
    const refused = {
      'a cluster': redis5.createCluster({ rootNodes: [{ url }] }),
      'a cluster of 6': redis6.createCluster({ rootNodes: [{ url }] }),
      'a pool': redis5.createClientPool({ url }),
      'the legacy interface': redis5.createClient({ url }).legacy(),
      'no client': {},
      'a number': 5,
      null: null,
    };
    for (const [name, client] of Object.entries(refused)) {
      assert.throws(
        () => new ZLinkRedisLocationStore(options(client)),
        { name: 'TypeError', argument: 'client' },
        name,
      );
    }
  });

  test('in subscriber mode is refused in RESP2, and works in RESP3', async () => {
    for (const [make, works] of [
      [() => redis5.createClient({ url: server.url }), false],
      [() => redis6.createClient({ url: server.url, RESP: 2 }), false],
      [() => redis5.createClient({ url: server.url, RESP: 3 }), true],
      [() => redis6.createClient({ url: server.url }), true],
    ]) {
      const client = await make().connect();
      const early = new ZLinkRedisLocationStore(options(client));
      await early.read(key('a'));
      await client.subscribe('channel', () => {});
      if (works) {
        assert.equal((await new ZLinkRedisLocationStore(options(client)).read(key('a'))).kind, 'missing');
      } else {
        assert.throws(() => new ZLinkRedisLocationStore(options(client)), /subscriber mode/);
        await assert.rejects(early.read(key('a')), { code: 'ZLINK_STORE_UNAVAILABLE', outcome: 'notApplied' });
      }
      client.destroy();
    }
  });
});

describe('a client whose server is away', () => {
  test('ends operations with an error, does not end the process, and works again afterwards', async (t) => {
    const proxy = await startProxy(server.port);
    const client = redis6.createClient({ url: proxy.url, socket: { reconnectStrategy: 20 } });
    t.after(async () => {
      client.destroy();
      await proxy.stop();
    });
    const store = new ZLinkRedisLocationStore({ client, keyPrefix: 'away', operationTimeoutMs: 500 });
    await store.write(put('a', every));
    proxy.swallow();
    const codes = ['ZLINK_STORE_TIMEOUT', 'ZLINK_STORE_UNAVAILABLE'];
    const failed = await store.read(key('a')).catch((error) => error);
    assert.ok(codes.includes(failed.code), failed.code);
    proxy.swallow(false);
    proxy.cut();
    await until(async () => (await store.read(key('a')).catch(() => ({}))).kind === 'found');
    await store.dispose();
  });

  test('is not opened again after its owner has closed it', async () => {
    const client = redis6.createClient({ url: server.url });
    const store = new ZLinkRedisLocationStore({ client, keyPrefix: 'closed' });
    await store.read(key('a'));
    await client.close();
    const closed = await store.read(key('a')).catch((error) => error);
    assert.deepEqual([closed.code, closed.outcome], ['ZLINK_STORE_UNAVAILABLE', 'notApplied']);
    assert.equal(client.isOpen, false);
    await client.connect();
    assert.equal((await store.read(key('a'))).kind, 'missing');
    await store.dispose();
    await client.close();
  });

  test('sends nothing later that was given up while it was away', async (t) => {
    const gone = await startRedis();
    const { port } = gone;
    await gone.stop();
    const client = redis6.createClient({ url: `redis://127.0.0.1:${port}`, socket: { reconnectStrategy: 20 } });
    t.after(() => client.destroy());
    const store = new ZLinkRedisLocationStore({ client, keyPrefix: 'late', operationTimeoutMs: 200 });
    const failed = await store.write(put('late', every)).catch((error) => error);
    // Only the client knows whether it has sent a command: what it was given counts as sent.
    assert.ok(['ZLINK_STORE_TIMEOUT', 'ZLINK_STORE_UNAVAILABLE'].includes(failed.code), failed.code);
    const back = await startRedisAt(port);
    await until(() => client.isReady);
    // What the client sends, it sends in order: had it kept the write, it would be there.
    const patient = new ZLinkRedisLocationStore({ client, keyPrefix: 'late', operationTimeoutMs: 10_000 });
    assert.equal((await patient.read(key('late'))).kind, 'missing');
    await Promise.all([store.dispose(), patient.dispose()]);
    await back.stop();
  });
});
