// Memory over many operations.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { ZLinkRedisLocationStore } from '@zlink-systems/framework-locations-redis';
import { stats } from '@zlink-systems/store-native';
import { residentMemory } from './support/memory.mjs';
import { startRedis } from './support/redis.mjs';

const key = (value) => ({ value });
const put = (name, bytes) => ({ conditions: [], mutations: [{ kind: 'put', key: key(name), bytes }] });

test('100,000 operations leave memory, handles and listeners as they were', async (t) => {
  const server = await startRedis();
  t.after(() => server.stop());
  const store = new ZLinkRedisLocationStore({ url: server.url, keyPrefix: 'flat' });
  const { signal } = new AbortController();
  const round = async (operations) => {
    for (let done = 0; done < operations; done += 1_000) {
      await Promise.all(
        Array.from({ length: 250 }, async (_, i) => {
          await store.write(put(`k${i}`, new Uint8Array(256)), signal);
          await store.read(key(`k${i}`), signal);
          await store.scan({ prefix: `k${i}`, limit: 1 }, signal);
          await assert.rejects(store.read(key('')));
        }),
      );
    }
  };
  // The engine takes its time to find the size of heap that it wants.
  await round(100_000);
  const connections = async () => (await server.command('CLIENT', 'LIST')).match(/^id=/gm).length;
  const before = {
    handles: process.getActiveResourcesInfo().length,
    connections: await connections(),
    memory: await residentMemory(),
  };
  await round(100_000);
  const grown = (await residentMemory()) - before.memory;
  assert.ok(grown < 10, `grown by ${grown} MiB`);
  assert.equal(process.getActiveResourcesInfo().length, before.handles);
  assert.equal(getEventListeners(signal, 'abort').length, 0);
  assert.equal(await connections(), before.connections);
  assert.equal(stats(store).inFlight, 0);
  await store.dispose();
});
