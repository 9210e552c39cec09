// Every code of an error, provoked; and what no error shows.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ZLinkEmbeddedLocationStore } from '@zlink-systems/framework-locations-embedded';
import { ZLinkRedisLocationStore } from '@zlink-systems/framework-locations-redis';
import { ping, stats, ZLinkStoreError } from '@zlink-systems/store-native';
import { startProxy } from './support/proxy.mjs';
import { startRedis } from './support/redis.mjs';

const key = (value) => ({ value });
const put = (name, bytes = new Uint8Array(1)) => ({
  conditions: [],
  mutations: [{ kind: 'put', key: key(name), bytes }],
});
const PASSWORD = 'Hidden-Password';

describe('an error', () => {
  let server;
  let proxy;
  before(async () => {
    server = await startRedis();
    proxy = await startProxy(server.port);
  });
  after(async () => {
    await proxy.stop();
    await server.stop();
  });

  const open = (url = proxy.url, operationTimeoutMs = 500) =>
    new ZLinkRedisLocationStore({ url, keyPrefix: 'errors', operationTimeoutMs });
  const failed = async (operation) => {
    const error = await operation.then(
      () => assert.fail('it succeeded'),
      (said) => said,
    );
    assert.ok(error instanceof Error);
    assert.ok(!`${error.message}${error.stack}${JSON.stringify(error)}`.includes(PASSWORD));
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
    const store = open();
    await store.read(key('warm'));
    proxy.swallow();
    const [reading, writing] = await Promise.all([failed(store.read(key('a'))), failed(store.write(put('a')))]);
    is(reading, 'TIMEOUT', 'notApplied', true);
    is(writing, 'TIMEOUT', 'unknown', true);
    assert.equal(stats(store).errors.TIMEOUT, 2);
    proxy.swallow(false);
    proxy.cut();
    await store.dispose();
  });

  test('UNAVAILABLE or TIMEOUT when nobody listens: not applied', async () => {
    const free = createServer();
    await new Promise((resolve) => free.listen(0, '127.0.0.1', resolve));
    const { port } = free.address();
    await new Promise((resolve) => free.close(resolve));
    const store = open(`redis://user:${PASSWORD}@127.0.0.1:${port}`);
    for (const begin of [() => store.read(key('a')), () => store.write(put('a')), () => ping(store)]) {
      const error = await failed(begin());
      is(error, /UNAVAILABLE|TIMEOUT/.exec(error.code)?.[0], 'notApplied', true);
    }
    await store.dispose();
  });

  test('UNAUTHENTICATED: wrong credentials, and a command that the user may not run, by name', async () => {
    const store = open(proxy.url.replace('//', `//nobody:${PASSWORD}@`));
    is(await failed(store.read(key('a'))), 'UNAUTHENTICATED', 'notApplied', false);
    await store.dispose();
    await server.command('ACL', 'SETUSER', 'reader', 'on', `>${PASSWORD}`, '~*', '+@all', '-evalsha', '-eval');
    const reader = open(proxy.url.replace('//', `//reader:${PASSWORD}@`));
    assert.equal((await reader.read(key('a'))).kind, 'missing');
    const denied = await failed(reader.write(put('a')));
    is(denied, 'UNAUTHENTICATED', 'notApplied', false);
    assert.match(denied.message, /evalsha/i);
    await reader.dispose();
  });

  test('OUT_OF_MEMORY: the engine refused the write', async () => {
    const full = await startRedis('--maxmemory-policy', 'noeviction');
    const store = open(full.url, 2_000);
    await store.read(key('warm'));
    await full.command('CONFIG', 'SET', 'maxmemory', 1);
    is(await failed(store.write(put('a', new Uint8Array(1_000)))), 'OUT_OF_MEMORY', 'notApplied', true);
    await store.dispose();
    await full.stop();
  });

  test('INCOMPATIBLE: a folder that holds something else', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'zlink-foreign-'));
    writeFileSync(join(folder, 'something.txt'), 'else');
    const opened = await (async () => new ZLinkEmbeddedLocationStore({ path: folder }).read(key('a')))().catch(
      (e) => e,
    );
    assert.equal(opened.code, 'ZLINK_STORE_INCOMPATIBLE', opened.message);
    assert.ok(opened instanceof ZLinkStoreError);
    rmSync(folder, { recursive: true });
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
