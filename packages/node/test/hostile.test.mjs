// Arguments that are code: whatever they do, their own call says so, and nobody else's hangs.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ZLinkEmbeddedLocationStore, ZLinkEmbeddedRelocationStore } from '@zlink-systems/framework-locations-embedded';
import { ZLinkRedisLocationStore } from '@zlink-systems/framework-locations-redis';
import { onLog } from '@zlink-systems/store-native';

const key = (value) => ({ value });
const put = (name, bytes = new Uint8Array(1)) => ({ kind: 'put', key: key(name), bytes });
const write = (...mutations) => ({ conditions: [], mutations });

describe('whatever the arguments do', () => {
  const folder = mkdtempSync(join(tmpdir(), 'zlink-hostile-'));
  const stores = {};
  before(() => {
    stores.memory = new ZLinkEmbeddedLocationStore();
    stores.file = new ZLinkEmbeddedLocationStore({ path: folder });
  });
  after(async () => {
    await Promise.all(Object.values(stores).map((store) => store.dispose()));
    rmSync(folder, { recursive: true });
  });

  for (const engine of ['memory', 'file']) {
    test(`a signal that throws fails its own call alone, in ${engine}`, async () => {
      const store = stores[engine];
      const boom = new Error('boom');
      const quiet = { aborted: false, addEventListener() {}, removeEventListener() {} };
      const adding = {
        ...quiet,
        addEventListener() {
          throw boom;
        },
      };
      const removing = {
        ...quiet,
        removeEventListener() {
          throw boom;
        },
      };
      const [failed, large, neighbour, removed] = [
        store.read(key('a'), adding),
        store.write(write(put('large', new Uint8Array(1_000_000))), adding),
        store.write(write(put('n'))),
        store.read(key('n'), removing),
      ];
      await assert.rejects(failed, boom);
      await assert.rejects(large, boom);
      assert.equal((await neighbour).kind, 'applied');
      assert.ok(['found', 'missing'].includes((await removed).kind));
    });

    test(`a signal may use the store, in ${engine}`, async () => {
      const store = stores[engine];
      let inner;
      const signal = {
        aborted: false,
        addEventListener() {
          inner = store.write(write(put('inner', new Uint8Array(1_000_000))));
        },
        removeEventListener() {},
      };
      const outer = await store.write(write(put('outer', new Uint8Array(1_000_000))), signal);
      assert.deepEqual(
        outer.putVersions.map((version) => version.key.value),
        ['outer'],
      );
      assert.deepEqual(
        (await inner).putVersions.map((version) => version.key.value),
        ['inner'],
      );
    });
  }

  test('an array that lies about its length is refused', async () => {
    const store = stores.memory;
    await store.write(write(put('stays')));
    const conditions = [
      { kind: 'missing', key: key('x') },
      { kind: 'missing', key: key('stays') },
    ];
    for (const length of [1.5, -1, Number.NaN, 'abc', null, '2']) {
      const lying = new Proxy(conditions, {
        get: (target, name, receiver) => (name === 'length' ? length : Reflect.get(target, name, receiver)),
      });
      await assert.rejects(store.write({ conditions: lying, mutations: [put('new')] }), {
        name: 'TypeError',
        argument: 'conditions',
      });
    }
    assert.equal((await store.read(key('stays'))).kind, 'found');
    assert.equal((await store.read(key('new'))).kind, 'missing');
  });

  test('what a subclass says of its memory does not count', async () => {
    const blobs = new ZLinkEmbeddedRelocationStore({ path: folder, keyPrefix: 'blobs' });
    class Elsewhere extends Uint8Array {
      get byteOffset() {
        return 0;
      }
      get buffer() {
        throw new Error('not for you');
      }
    }
    const memory = new ArrayBuffer(4_000_000);
    new Uint8Array(memory).fill(1, 0, 2_000_000).fill(2, 2_000_000);
    await blobs.put(key('half'), new Elsewhere(memory, 2_000_000), 60_000);
    const { bytes } = await blobs.read(key('half'));
    assert.ok(bytes.length === 2_000_000 && bytes.every((byte) => byte === 2));
    await blobs.dispose();
  });

  test('a store that is disposed by its own argument can be disposed', async () => {
    const store = new ZLinkEmbeddedLocationStore();
    const disposing = {
      get value() {
        store.dispose().catch(() => {});
        return 'a';
      },
    };
    await store.read(disposing);
    await store.dispose();
    await assert.rejects(store.read(key('a')), { code: 'ZLINK_STORE_CLOSED' });
  });

  test('a path with a NUL is an argument error', () => {
    assert.throws(() => new ZLinkEmbeddedLocationStore({ path: 'a\0b' }), { name: 'RangeError', argument: 'path' });
  });
});

test('dispose waits for what was asked before it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'zlink-dispose-'));
  for (let round = 0; round < 20; round++) {
    const blobs = new ZLinkEmbeddedRelocationStore({ path: folder });
    const asked = [blobs.put(key('a'), Buffer.from('x'), 60_000), blobs.read(key('a')), blobs.delete(key('b'))];
    const disposed = blobs.dispose();
    await Promise.all(asked);
    await disposed;
  }
  rmSync(folder, { recursive: true });
});

test('log events are heard until they are not wanted any more', async () => {
  const heard = [];
  const off = onLog((event) => heard.push(event), 'debug');
  const store = new ZLinkRedisLocationStore({
    url: 'redis://user:s3cret@127.0.0.1:1',
    keyPrefix: 'log',
    operationTimeoutMs: 200,
  });
  await assert.rejects(store.read(key('a')), { code: 'ZLINK_STORE_UNAVAILABLE' });
  await store.dispose();
  assert.ok(heard.length > 0);
  assert.ok(
    heard.every(({ level, target }) => ['debug', 'info', 'warn'].includes(level) && target.startsWith('zlink_store')),
  );
  assert.ok(!JSON.stringify(heard).includes('s3cret'));
  off();
});
