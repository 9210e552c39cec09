// Cancellation by AbortSignal (F31).
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { runInNewContext } from 'node:vm';
import { ZLinkEmbeddedLocationStore } from '@zlink-systems/framework-locations-embedded';
import { ZLinkRedisLocationStore, ZLinkRedisRelocationStore } from '@zlink-systems/framework-locations-redis';
import { stats } from '@zlink-systems/store-native';
import { startProxy, until } from './support/proxy.mjs';
import { startRedis } from './support/redis.mjs';
import { redis as redisPackage, run } from './support/scripts.mjs';

const key = (value) => ({ value });
const put = (name, bytes = new Uint8Array(1)) => ({
  conditions: [],
  mutations: [{ kind: 'put', key: key(name), bytes }],
});

describe('a signal', () => {
  let server;
  let proxy;
  const stores = [];
  const open = (Store, options = {}) => {
    const store = new Store({ url: proxy.url, keyPrefix: `signals-${stores.length}`, ...options });
    stores.push(store);
    return store;
  };

  before(async () => {
    server = await startRedis();
    proxy = await startProxy(server.port);
  });
  after(async () => {
    proxy.swallow(false);
    await Promise.all(stores.map((store) => store.dispose()));
    await proxy.stop();
    await server.stop();
  });

  test('aborted before the call rejects with its reason, and nothing is sent', async () => {
    const store = open(ZLinkRedisLocationStore);
    const reasons = [new Error('own'), 'text', 0, null, { some: 'object' }];
    for (const reason of reasons) {
      await assert.rejects(
        store.read(key('a'), AbortSignal.abort(reason)),
        (said) => Object.is(said, reason) || said === reason,
      );
    }
    await assert.rejects(store.write(put('a'), AbortSignal.abort()), { name: 'AbortError' });
    await assert.rejects(store.scan({ prefix: '', limit: 1 }, AbortSignal.abort()), { name: 'AbortError' });
    assert.equal(proxy.connections, 0, 'it did not even connect');
    assert.equal(stats(store).operations.read, 0);
  });

  test('aborted in the tick of the call rejects, and nothing is sent', async () => {
    const store = open(ZLinkRedisLocationStore);
    await store.read(key('warm'));
    const controller = new AbortController();
    const reason = new Error('same tick');
    const writing = store.write(put('never-written'), controller.signal);
    controller.abort(reason);
    await assert.rejects(writing, (said) => said === reason);
    assert.equal((await store.read(key('never-written'))).kind, 'missing');
    assert.ok(!proxy.said.includes('never-written') || stats(store).operations.write === 0);
    assert.equal(stats(store).operations.write, 0);
  });

  test('an argument error goes before a cancellation', async () => {
    const store = open(ZLinkRedisLocationStore);
    const code = 'ZLINK_STORE_INVALID_ARGUMENT';
    await assert.rejects(store.read(key(''), AbortSignal.abort()), { code });
    await assert.rejects(store.read({ value: 5 }, AbortSignal.abort()), { code });
    const controller = new AbortController();
    const reading = store.read(key('k'.repeat(1_025)), controller.signal);
    controller.abort();
    await assert.rejects(reading, { code });
    const writing = store.write(
      { conditions: [], mutations: [...put('a').mutations, ...put('a').mutations] },
      controller.signal,
    );
    await assert.rejects(writing, { code, argument: 'mutations[1].key' });
  });

  test('aborted while the answer is awaited rejects at once; the store works on', async () => {
    const store = open(ZLinkRedisLocationStore, { operationTimeoutMs: 60_000 });
    await store.read(key('warm'));
    proxy.swallow();
    const controller = new AbortController();
    const { sent } = proxy;
    const waiting = [store.read(key('a'), controller.signal), store.write(put('b'), controller.signal)];
    await until(() => proxy.sent > sent);
    const reason = new Error('mid-flight');
    controller.abort(reason);
    for (const operation of waiting) await assert.rejects(operation, (said) => said === reason);
    assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
    proxy.swallow(false);
    proxy.cut();
    assert.ok(['missing', 'found'].includes((await store.read(key('b'))).kind));
  });

  test('aborted after the end changes nothing', async () => {
    const store = open(ZLinkRedisLocationStore);
    const controller = new AbortController();
    const { kind } = await store.read(key('a'), controller.signal);
    controller.abort();
    assert.equal(kind, 'missing');
    await assert.rejects(store.read(key('a'), controller.signal), { name: 'AbortError' });
    assert.equal((await store.read(key('a'))).kind, 'missing');
  });

  test('10,000 operations leave no listener and no warning', async () => {
    const store = open(ZLinkRedisLocationStore);
    const { signal } = new AbortController();
    const warnings = [];
    const listener = (warning) => warnings.push(warning);
    process.on('warning', listener);
    for (let round = 0; round < 10; round++) {
      const reads = Array.from({ length: 1_000 }, (_, i) => store.read(key(`k${i}`), signal));
      assert.ok(getEventListeners(signal, 'abort').length <= 1);
      await Promise.all(reads);
    }
    await pause(0);
    process.off('warning', listener);
    assert.equal(getEventListeners(signal, 'abort').length, 0);
    assert.deepEqual(warnings, []);
  });

  test('10,000 operations aborted together all reject and leave nothing', async () => {
    const store = open(ZLinkRedisLocationStore, { operationTimeoutMs: 60_000 });
    await store.read(key('warm'));
    proxy.swallow();
    const controller = new AbortController();
    const reads = Array.from({ length: 10_000 }, (_, i) => store.read(key(`k${i}`), controller.signal));
    await pause(0);
    controller.abort('all');
    const ends = await Promise.allSettled(reads);
    assert.ok(ends.every((end) => end.status === 'rejected' && end.reason === 'all'));
    assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
    await until(() => stats(store).inFlight === 0);
    proxy.swallow(false);
    proxy.cut();
    assert.equal((await store.read(key('a'))).kind, 'missing');
  });

  test('an aborted put of a large blob is never seen, and its memory is not read any more', async () => {
    const blobs = open(ZLinkRedisRelocationStore, { operationTimeoutMs: 60_000 });
    await blobs.read(key('warm'));
    const payload = new Uint8Array(32 * 1024 * 1024);
    const controller = new AbortController();
    const { sent } = proxy;
    const putting = blobs.put(key('blob'), payload, 60_000, controller.signal);
    await until(() => proxy.sent > sent);
    proxy.swallow();
    controller.abort('enough');
    await assert.rejects(putting, (said) => said === 'enough');
    // Detached memory could not be read; a fault would show in the log or as a crash.
    structuredClone(payload, { transfer: [payload.buffer] });
    proxy.swallow(false);
    proxy.cut();
    assert.equal((await blobs.read(key('blob'))).kind, 'missing');
  });

  test('AbortSignal.timeout and AbortSignal.any work', async () => {
    const store = open(ZLinkRedisLocationStore, { operationTimeoutMs: 60_000 });
    await store.read(key('warm'));
    proxy.swallow();
    await assert.rejects(store.read(key('a'), AbortSignal.timeout(30)), { name: 'TimeoutError' });
    const controller = new AbortController();
    const any = AbortSignal.any([controller.signal, AbortSignal.timeout(60_000)]);
    const reading = store.read(key('a'), any);
    await pause(10);
    controller.abort('one of them');
    await assert.rejects(reading, (said) => said === 'one of them');
    proxy.swallow(false);
    proxy.cut();
  });

  test('of another realm works', async () => {
    const store = open(ZLinkRedisLocationStore, { operationTimeoutMs: 60_000 });
    // What another realm's signal is to us: no instance of our AbortSignal.
    const foreign = runInNewContext(
      `class ForeignSignal {
        aborted = false; reason = undefined; listeners = new Set();
        addEventListener(type, listener) { if (type === 'abort') this.listeners.add(listener); }
        removeEventListener(type, listener) { this.listeners.delete(listener); }
        abort(reason) { this.aborted = true; this.reason = reason; for (const listener of this.listeners) listener({ type: 'abort' }); }
      }
      new ForeignSignal()`,
    );
    assert.equal((await store.read(key('a'), foreign)).kind, 'missing');
    assert.equal(foreign.listeners.size, 0);
    proxy.swallow();
    const reading = store.read(key('a'), foreign);
    await pause(10);
    foreign.abort('from there');
    await assert.rejects(reading, (said) => said === 'from there');
    assert.equal(foreign.listeners.size, 0);
    await assert.rejects(store.read(key('a'), foreign), (said) => said === 'from there');
    proxy.swallow(false);
    proxy.cut();
  });

  test('that is none is an argument error', async () => {
    const store = open(ZLinkRedisLocationStore);
    for (const signal of [5, 'abort', {}, new AbortController()]) {
      const error = await store.read(key('a'), signal).catch((said) => said);
      assert.ok(error instanceof TypeError);
      assert.equal(error.argument, 'signal');
    }
    assert.equal((await store.read(key('a'), undefined)).kind, 'missing');
    assert.equal((await store.read(key('a'), null)).kind, 'missing');
  });

  test('works with a store in memory, whose answer comes within the tick', async () => {
    const store = new ZLinkEmbeddedLocationStore();
    const controller = new AbortController();
    const writing = store.write(put('a'), controller.signal);
    controller.abort('no');
    await assert.rejects(writing, (said) => said === 'no');
    assert.equal((await store.read(key('a'))).kind, 'missing');
    const fresh = new AbortController();
    await store.write(put('a'), fresh.signal);
    assert.equal(getEventListeners(fresh.signal, 'abort').length, 0);
    await store.dispose();
  });

  test('dispose right after an abort resolves, and the process exits without an uncaught exception', async () => {
    proxy.swallow();
    const { code, stderr, stdout } = await run(`
      import { ZLinkRedisLocationStore } from ${JSON.stringify(redisPackage)};
      const store = new ZLinkRedisLocationStore({ url: '${proxy.url}', keyPrefix: 'p', operationTimeoutMs: 3000 });
      const controller = new AbortController();
      const reads = Array.from({ length: 100 }, () => store.read({ value: 'a' }, controller.signal));
      await new Promise((resolve) => setTimeout(resolve, 50));
      controller.abort(new Error('stop'));
      const ends = await Promise.allSettled(reads);
      await store.dispose();
      console.log(ends.every((end) => end.reason.message === 'stop'));`);
    assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: 'true\n', stderr: '' });
    proxy.swallow(false);
  });
});
