// Bytes on their way in and out (F34).
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { runInNewContext } from 'node:vm';
import { ZLinkEmbeddedLocationStore, ZLinkEmbeddedRelocationStore } from '@zlink-systems/framework-locations-embedded';
import { ZLinkRedisLocationStore, ZLinkRedisRelocationStore } from '@zlink-systems/framework-locations-redis';
import { residentMemory } from './support/memory.mjs';
import { startProxy, until } from './support/proxy.mjs';
import { startRedis } from './support/redis.mjs';
import { embedded as embeddedPackage, run } from './support/scripts.mjs';

const MIB = 2 ** 20;
const key = (value) => ({ value });
const put = (name, bytes) => ({ conditions: [], mutations: [{ kind: 'put', key: key(name), bytes }] });
/** Bytes in which no two places are easily taken for each other. */
const pattern = (length) => {
  const bytes = new Uint8Array(length);
  const words = new Uint32Array(bytes.buffer, 0, length >> 2);
  for (let i = 0; i < words.length; i++) words[i] = Math.imul(i, 2_654_435_761);
  return bytes;
};
const isPlain = (bytes) => {
  assert.equal(Object.getPrototypeOf(bytes), Uint8Array.prototype, 'no Buffer');
  assert.equal(bytes.byteOffset, 0);
  assert.equal(bytes.buffer.byteLength, bytes.byteLength, 'memory of its own');
};

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

for (const kind of ['memory', 'redis']) {
  describe(`bytes (${kind})`, () => {
    let locations;
    let blobs;
    before(() => {
      const options = (keyPrefix) => ({ url: proxy.url, keyPrefix, operationTimeoutMs: 30_000 });
      locations = kind === 'redis' ? new ZLinkRedisLocationStore(options('bytes')) : new ZLinkEmbeddedLocationStore();
      blobs = kind === 'redis' ? new ZLinkRedisRelocationStore(options('blobs')) : new ZLinkEmbeddedRelocationStore();
    });
    after(() => Promise.all([locations.dispose(), blobs.dispose()]));

    const CASES = {
      'a Uint8Array': () => pattern(100),
      'no bytes': () => new Uint8Array(),
      'no bytes of a buffer that has some': () => new Uint8Array(new ArrayBuffer(8), 4, 0),
      'a view': () => pattern(100).subarray(40, 60),
      'a Buffer of the pool': () => Buffer.from('pooled'),
      'of shared memory': () => {
        const shared = new Uint8Array(new SharedArrayBuffer(64), 8, 20);
        shared.set(pattern(20));
        return shared;
      },
      'of another realm': () => runInNewContext('new Uint8Array([1, 2, 255])'),
      'of a subclass': () => new (class Odd extends Uint8Array {})([3, 4]),
      'that lie about their length': () => Object.defineProperty(pattern(12), 'byteLength', { value: 3 }),
    };
    for (const [name, make] of Object.entries(CASES)) {
      test(`${name}`, async () => {
        const bytes = make();
        const expected = Uint8Array.from(bytes);
        await locations.write(put(name, bytes));
        const { value } = await locations.read(key(name));
        assert.deepEqual(value.bytes, expected);
        isPlain(value.bytes);
        await blobs.put(key(name), bytes, 60_000);
        const blob = await blobs.read(key(name));
        assert.deepEqual(blob.bytes, expected);
        isPlain(blob.bytes);
      });
    }

    for (const size of [64 * 1024 - 1, 64 * 1024, MIB]) {
      test(`a value of ${size} bytes`, async () => {
        const bytes = pattern(size);
        await locations.write(put(`size-${size}`, bytes));
        for (const { value } of [
          await locations.read(key(`size-${size}`)),
          (await locations.scan({ prefix: `size-${size}`, limit: 1 })).value.items[0],
        ]) {
          assert.ok(Buffer.from(value.bytes).equals(bytes));
          isPlain(value.bytes);
        }
      });
    }

    for (const size of [MIB, MIB + 1, 64 * MIB + 23]) {
      test(`a blob of ${size} bytes`, async () => {
        const bytes = pattern(size);
        const reference = key(`size-${size}`);
        assert.equal((await blobs.put(reference, bytes, 60_000)).kind, 'stored');
        assert.equal((await blobs.put(reference, bytes, 60_000)).kind, 'alreadyStored');
        const found = await blobs.read(reference);
        assert.ok(Buffer.from(found.bytes.buffer).equals(bytes));
        isPlain(found.bytes);
        bytes[size - 1] ^= 1;
        assert.equal((await blobs.put(reference, bytes, 60_000)).kind, 'conflict');
        await blobs.delete(reference);
      });
    }

    test('a large blob of a view and of shared memory', async () => {
      const whole = pattern(5 * MIB);
      await blobs.put(key('view'), whole.subarray(MIB, 4 * MIB), 60_000);
      assert.ok(Buffer.from((await blobs.read(key('view'))).bytes).equals(whole.subarray(MIB, 4 * MIB)));
      const shared = new Uint8Array(new SharedArrayBuffer(2 * MIB));
      shared.set(whole.subarray(0, 2 * MIB));
      const putting = blobs.put(key('shared'), shared, 60_000);
      shared.fill(0);
      await putting;
      const found = await blobs.read(key('shared'));
      assert.ok(Buffer.from(found.bytes).equals(whole.subarray(0, 2 * MIB)), 'copied at the call');
    });

    test('what was given in may be used again at once', async () => {
      const bytes = pattern(1_000);
      const writing = locations.write(put('reused', bytes));
      bytes.fill(0);
      await writing;
      assert.deepEqual((await locations.read(key('reused'))).value.bytes, pattern(1_000));
    });

    test('what was given out belongs to its result', async () => {
      for (const size of [10, 100_000]) {
        await locations.write(put('own', pattern(size)));
        const reads = await Promise.all([locations.read(key('own')), locations.read(key('own'))]);
        const [first, second] = reads.map((read) => read.value.bytes);
        first.fill(0);
        assert.deepEqual(second, pattern(size));
        structuredClone(second, { transfer: [second.buffer] });
        assert.deepEqual((await locations.read(key('own'))).value.bytes, pattern(size));
      }
      await blobs.put(key('own'), pattern(2 * MIB), 60_000);
      const blob = await blobs.read(key('own'));
      blob.bytes.fill(0);
      assert.ok(Buffer.from((await blobs.read(key('own'))).bytes).equals(pattern(2 * MIB)));
    });

    test('detached memory is an argument error', async () => {
      const detached = new Uint8Array(8);
      structuredClone(detached, { transfer: [detached.buffer] });
      const writing = await locations.write(put('a', detached)).catch((error) => error);
      assert.ok(writing instanceof TypeError);
      assert.equal(writing.argument, 'mutations[0].bytes');
      const putting = await blobs.put(key('a'), detached, 1).catch((error) => error);
      assert.ok(putting instanceof TypeError);
      assert.equal(putting.argument, 'payload');
    });
  });
}

test('a large payload that is detached while it is put ends the put with an error, and nothing is stored', async () => {
  const blobs = new ZLinkRedisRelocationStore({ url: proxy.url, keyPrefix: 'detached', operationTimeoutMs: 30_000 });
  const payload = pattern(32 * MIB);
  const putting = blobs.put(key('r'), payload, 60_000);
  structuredClone(payload, { transfer: [payload.buffer] });
  const error = await putting.catch((said) => said);
  assert.ok(error instanceof TypeError);
  assert.equal(error.argument, 'payload');
  assert.equal((await blobs.read(key('r'))).kind, 'missing');
  await blobs.dispose();
});

test('payloads that wait are not copied: memory stays bounded while 500 puts of 8 MiB stand still', async () => {
  const blobs = new ZLinkRedisRelocationStore({ url: proxy.url, keyPrefix: 'still', operationTimeoutMs: 1_500 });
  await blobs.read(key('warm'));
  const payload = pattern(8 * MIB);
  const before = await residentMemory();
  proxy.swallow();
  const puts = Array.from({ length: 500 }, (_, i) => blobs.put(key(`r${i}`), payload, 60_000));
  const ends = await Promise.allSettled(puts);
  assert.ok(ends.every((end) => ['ZLINK_STORE_TIMEOUT', 'ZLINK_STORE_UNAVAILABLE'].includes(end.reason?.code)));
  assert.ok((await residentMemory()) - before < 320, 'in-flight bytes are bounded');
  proxy.swallow(false);
  proxy.cut();
  await until(async () => (await blobs.read(key('r0')).catch(() => ({ kind: 'later' }))).kind === 'missing');
  await blobs.dispose();
});

test('where external memory is refused, everything comes as a copy', async () => {
  const end = await run(
    `const { ZLinkEmbeddedLocationStore, ZLinkEmbeddedRelocationStore } = require(${JSON.stringify(embeddedPackage)});
    (async () => {
      const locations = new ZLinkEmbeddedLocationStore();
      const blobs = new ZLinkEmbeddedRelocationStore();
      const value = Buffer.alloc(1 << 20, 7);
      await locations.write({ conditions: [], mutations: [
        { kind: 'put', key: { value: 'a' }, bytes: value }, { kind: 'put', key: { value: 'b' }, bytes: new Uint8Array() }] });
      await blobs.put({ value: 'r' }, Buffer.alloc(64 << 20, 9), 60000);
      console.log(
        value.equals((await locations.read({ value: 'a' })).value.bytes),
        (await locations.read({ value: 'b' })).value.bytes.length,
        (await locations.scan({ prefix: '', limit: 5 })).value.items.map((item) => item.value.bytes.length).join(),
        (await blobs.read({ value: 'r' })).bytes.every((byte) => byte === 9));
    })();`,
    { module: false, env: { ZLINK_STORE_EXTERNAL_BUFFERS: '0' } },
  );
  assert.deepEqual([end.code, end.stdout, end.stderr], [0, `true 0 ${MIB},0 true\n`, '']);
});
