// Every code of an error, provoked, on stores that log in with a password; and what no error shows.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { inspect } from 'node:util';
import { ZLinkEmbeddedLocationStore } from '@zlink-systems/framework-locations-embedded';
import { ZLinkRedisLocationStore, ZLinkRedisRelocationStore } from '@zlink-systems/framework-locations-redis';
import { ping, stats, ZLinkStoreError } from '@zlink-systems/store-native';
import { startProxy, until } from './support/proxy.mjs';
import { startRedis } from './support/redis.mjs';

const key = (value) => ({ value });
const VALUE = 'Hidden-Value';
const put = (name, bytes = Buffer.from(VALUE)) => ({
  conditions: [],
  mutations: [{ kind: 'put', key: key(name), bytes }],
});
const PASSWORD = 'Hidden-Password';

describe('an error', () => {
  let server;
  let proxy;
  before(async () => {
    server = await startRedis();
    await server.command('ACL', 'SETUSER', 'app', 'on', `>${PASSWORD}`, '~*', '+@all');
    proxy = await startProxy(server.port);
  });
  after(async () => {
    await proxy.stop();
    await server.stop();
  });

  const as = (user, url = proxy.url) => url.replace('//', `//${user}:${PASSWORD}@`);
  const open = (url = as('app'), operationTimeoutMs = 30_000) =>
    new ZLinkRedisLocationStore({ url, keyPrefix: 'errors', operationTimeoutMs });
  const failed = async (operation) => {
    const error = await operation.then(
      () => assert.fail('it succeeded'),
      (said) => said,
    );
    assert.ok(error instanceof Error);
    const shown = `${error.message}${error.stack}${JSON.stringify(error)}${inspect(error)}`;
    for (const secret of [PASSWORD, VALUE, '{errors', 'redis.call', 'local ']) {
      assert.ok(!shown.includes(secret), `an error shows ${secret}: ${error.message}`);
    }
    return error;
  };
  const is = (error, code, outcome, retryable) => {
    assert.ok(error instanceof ZLinkStoreError, error.stack);
    assert.equal(error.name, 'ZLinkStoreError');
    assert.deepEqual(
      [error.code, error.outcome, error.retryable],
      [`ZLINK_STORE_${code}`, outcome, retryable],
      error.message,
    );
  };

  test('INVALID_ARGUMENT is a RangeError or TypeError that names the argument', async () => {
    const store = open();
    const { signal } = new AbortController();
    for (const [begin, Type, argument] of [
      [() => store.read(key('')), RangeError, 'key'],
      [() => store.read(key('\ud800')), RangeError, 'key'],
      [() => store.read('text'), TypeError, 'key'],
      [() => store.read(), TypeError, 'key'],
      [() => store.write(), TypeError, 'request'],
      [() => store.write({ conditions: 5, mutations: [] }), TypeError, 'conditions'],
      [() => store.write({ conditions: [] }), TypeError, 'mutations'],
      [() => store.write({ conditions: [null], mutations: [] }), TypeError, 'conditions[0].condition'],
      [
        () => store.write({ conditions: [{ kind: 'odd', key: key('a') }], mutations: [] }),
        TypeError,
        'conditions[0].kind',
      ],
      [
        () => store.write({ conditions: [{ kind: 'version', key: key('a') }], mutations: [] }),
        TypeError,
        'conditions[0].expected',
      ],
      [() => store.write({ ...put('a', 'text') }), TypeError, 'mutations[0].bytes'],
      [() => store.write(put('a', new Uint8Array(2 ** 20 + 1))), RangeError, 'mutations[0].bytes'],
      [
        () => store.write({ conditions: [], mutations: [{ ...put('a').mutations[0], retentionMs: 1.5 }] }),
        RangeError,
        'mutations[0].retentionMs',
      ],
      [
        () => store.write({ conditions: [], mutations: [{ ...put('a').mutations[0], retentionMs: '5' }] }),
        TypeError,
        'mutations[0].retentionMs',
      ],
      [() => store.scan({ prefix: '', limit: 0 }), RangeError, 'limit'],
      [() => store.scan({ prefix: '', limit: Number.NaN }, signal), RangeError, 'limit'],
      [() => store.scan({ prefix: 5, limit: 1 }), TypeError, 'prefix'],
      [() => store.scan({ prefix: '', limit: 1, cursor: 'text' }), TypeError, 'cursor'],
    ]) {
      const error = await failed(begin());
      assert.ok(error instanceof Type, error.stack);
      assert.deepEqual(
        [error.code, error.outcome, error.retryable],
        ['ZLINK_STORE_INVALID_ARGUMENT', 'notApplied', false],
      );
      assert.equal(error.argument, argument);
      assert.ok(error.message.startsWith(argument), error.message);
    }
    await store.dispose();
  });

  test('TIMEOUT: a read surely changed nothing, a write may have', async () => {
    // One that has time makes the connection, which both share.
    const patient = open();
    await patient.read(key('warm'));
    const store = open(as('app'), 2_000);
    proxy.swallow();
    const [reading, writing] = await Promise.all([failed(store.read(key('a'))), failed(store.write(put('a')))]);
    is(reading, 'TIMEOUT', 'notApplied', true);
    is(writing, 'TIMEOUT', 'unknown', true);
    assert.equal(stats(store).errors.TIMEOUT, 2);
    proxy.swallow(false);
    proxy.cut();
    await Promise.all([store.dispose(), patient.dispose()]);
  });

  test('UNAVAILABLE or TIMEOUT when nobody listens: not applied', async () => {
    const free = createServer();
    await new Promise((resolve) => free.listen(0, '127.0.0.1', resolve));
    const { port } = free.address();
    await new Promise((resolve) => free.close(resolve));
    const store = open(`redis://user:${PASSWORD}@127.0.0.1:${port}`, 500);
    for (const begin of [() => store.read(key('a')), () => store.write(put('a')), () => ping(store)]) {
      const error = await failed(begin());
      is(error, /UNAVAILABLE|TIMEOUT/.exec(error.code)?.[0], 'notApplied', true);
    }
    await store.dispose();
  });

  test('UNAVAILABLE: the connection is lost', async () => {
    const store = open();
    await store.read(key('warm'));
    // The write arrives and its answer does not; a delete leaves no mark that could be looked for.
    proxy.swallow();
    const writing = failed(store.write({ conditions: [], mutations: [{ kind: 'delete', key: key('lost') }] }));
    await until(() => proxy.said.includes('{errors}:r:lost'));
    proxy.cut();
    proxy.swallow(false);
    is(await writing, 'UNAVAILABLE', 'unknown', true);
    assert.equal((await store.read(key('a'))).kind, 'missing');
    await store.dispose();
  });

  test('UNAUTHENTICATED: wrong credentials, and a command that the user may not run, by name', async () => {
    const store = open(as('nobody'));
    is(await failed(store.read(key('a'))), 'UNAUTHENTICATED', 'notApplied', false);
    await store.dispose();
    await server.command('ACL', 'SETUSER', 'reader', 'on', `>${PASSWORD}`, '~*', '+@all', '-evalsha', '-eval');
    const reader = open(as('reader'));
    assert.equal((await reader.read(key('a'))).kind, 'missing');
    const denied = await failed(reader.write(put('a')));
    is(denied, 'UNAUTHENTICATED', 'notApplied', false);
    assert.match(denied.message, /evalsha/i);
    await reader.dispose();
  });

  test('OUT_OF_MEMORY: the engine refused the write', async () => {
    const full = await startRedis('--maxmemory-policy', 'noeviction');
    const store = open(full.url);
    await store.read(key('warm'));
    await full.command('CONFIG', 'SET', 'maxmemory', 1);
    is(await failed(store.write(put('a', new Uint8Array(1_000)))), 'OUT_OF_MEMORY', 'notApplied', true);
    await store.dispose();
    await full.stop();
  });

  test('INCOMPATIBLE: a folder that holds something else', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'zlink-foreign-'));
    writeFileSync(join(folder, 'something.txt'), 'else');
    const opening = (async () => new ZLinkEmbeddedLocationStore({ path: folder }).read(key('a')))();
    is(await failed(opening), 'INCOMPATIBLE', 'notApplied', false);
    rmSync(folder, { recursive: true });
  });

  test('INCOMPATIBLE: a newer layout, and a foreign type under a key of the store', async () => {
    const other = await startRedis();
    const store = open(other.url);
    await store.write(put('a'));
    await other.command('DEL', '{errors}:r:a');
    await other.command('LPUSH', '{errors}:r:a', VALUE);
    is(await failed(store.write(put('a'))), 'INCOMPATIBLE', 'notApplied', false);
    assert.equal((await store.write(put('b'))).kind, 'applied');
    assert.match(await other.command('GET', '{errors}:f'), /^\$1\r\n1\r\n$/);
    await other.command('SET', '{errors}:f', '2');
    for (const begin of [
      () => store.read(key('b')),
      () => store.write(put('b')),
      () => store.scan({ prefix: '', limit: 1 }),
    ]) {
      is(await failed(begin()), 'INCOMPATIBLE', 'notApplied', false);
    }
    await store.dispose();
    await other.stop();
  });

  test('INTERNAL: a blob that somebody else took parts out of', async () => {
    const blobs = new ZLinkRedisRelocationStore({
      url: as('app'),
      keyPrefix: 'errors-blobs',
      operationTimeoutMs: 30_000,
    });
    const reference = { value: 'broken' };
    assert.equal((await blobs.put(reference, Buffer.alloc(1 << 20, VALUE), 60_000)).kind, 'stored');
    const large = `local all = redis.call('KEYS', '{errors-blobs*')
      for _, key in ipairs(all) do if redis.call('STRLEN', key) > 200000 then return redis.call('DEL', key) end end`;
    assert.equal(await server.command('EVAL', large, 0), ':1\r\n');
    is(await failed(blobs.read(reference)), 'INTERNAL', 'notApplied', false);
    is(await failed(blobs.renew(reference, 60_000)), 'INTERNAL', 'notApplied', false);
    // It can be deleted, and is no fault of anybody's afterwards.
    await blobs.delete(reference);
    assert.equal((await blobs.read(reference)).kind, 'missing');
    await blobs.dispose();
  });

  test('CLOSED: after dispose; argument errors go before it', async () => {
    const store = open();
    await store.read(key('a'));
    await store.dispose();
    for (const begin of [
      () => store.read(key('a')),
      () => store.write(put('a')),
      () => store.scan({ prefix: '', limit: 1 }),
      () => ping(store),
    ]) {
      is(await failed(begin()), 'CLOSED', 'notApplied', false);
    }
    assert.equal((await failed(store.read(key('')))).code, 'ZLINK_STORE_INVALID_ARGUMENT');
  });

  test("has a stack that leads to the caller's line", async () => {
    const memory = new ZLinkEmbeddedLocationStore();
    await memory.dispose();
    async function theCaller() {
      return await memory.read(key('a'));
    }
    for (const begin of [
      theCaller,
      () => Promise.all([theCaller()]),
      () => theCaller().catch((error) => Promise.reject(error)),
    ]) {
      assert.match((await failed(begin())).stack, /theCaller .*errors\.test\.mjs:\d+/);
    }
  });

  test('never comes synchronously', () => {
    const store = open();
    for (const odd of [
      undefined,
      null,
      5,
      Symbol('x'),
      {
        get value() {
          throw new Error('getter');
        },
      },
    ]) {
      for (const name of ['read', 'write', 'scan']) {
        const operation = store[name](odd);
        assert.ok(operation instanceof Promise);
        operation.catch(() => {});
      }
    }
    return store.dispose();
  });
});
