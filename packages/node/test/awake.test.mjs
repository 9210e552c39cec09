// Staying awake for an answer (store-native/src/awake.ts) ends soon where none comes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { ZLinkRedisLocationStore } from '@zlink-systems/framework-locations-redis';
import { startServer } from './support/servers.mjs';

/** The part of one processor that this process uses during `work`. */
async function busy(work) {
  const began = performance.now();
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000 / (performance.now() - began);
}

async function stores(t, ...options) {
  const server = await startServer('single', ...options);
  const store = new ZLinkRedisLocationStore({ url: server.proxyUrl ?? server.url, keyPrefix: 'awake' });
  t.after(async () => {
    await store.dispose();
    await server.stop();
  });
  await store.read({ value: 'a' });
  return { server, store };
}

test('nobody stays awake for a server that is silent, and everything else goes on', async (t) => {
  const { server, store } = await stores(t);
  await server.say('pause');
  const reads = [1, 2, 3].map(() => store.read({ value: 'a' }));
  let ticks = 0;
  const ticking = setInterval(() => ticks++, 10);
  const part = await busy(() => pause(1_000));
  clearInterval(ticking);
  await server.say('resume');
  for (const result of await Promise.all(reads)) assert.equal(result.kind, 'missing');
  assert.ok(part < 0.5, `${part} of a processor`);
  assert.ok(ticks > 5, `${ticks} ticks`);
});

test('nobody stays awake for answers of a server far away', async (t) => {
  const { server, store } = await stores(t, '--proxy');
  for (const [delay, callers] of [
    [10, 1],
    [3, 8],
  ]) {
    await server.say(`proxy delay replies ${delay}`);
    const one = async (_, caller) => {
      // Not all at the same moments.
      await pause((delay * caller) / callers);
      for (let i = 0; i < 100; i++) assert.equal((await store.read({ value: 'a' })).kind, 'missing');
    };
    const part = await busy(() => Promise.all(Array.from({ length: callers }, one)));
    assert.ok(part < 0.5, `${part} of a processor, ${callers} callers`);
  }
});
