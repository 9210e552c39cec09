// Redis is killed and started again under load: no wrong result, and the same stores work on.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { ZLinkRedisLocationStore, ZLinkRedisRelocationStore } from '@zlink-systems/framework-locations-redis';
import { createClient } from 'redis6';
import { Work } from './support/chains.mjs';
import { startServer } from './support/servers.mjs';

const ROUNDS = 5;
const CHAINS = 24;

const connections = {
  'connections of our own': (url) => ({ options: { url }, end() {} }),
  "the user's own client": (url) => {
    const client = createClient({ url, socket: { reconnectStrategy: 20 } }).on('error', () => {});
    return { options: { client }, end: () => client.destroy() };
  },
};

for (const [how, connect] of Object.entries(connections)) {
  test(`Redis killed and restarted under load, through ${how}`, async (t) => {
    const server = await startServer('single', '--aof');
    const { options, end } = connect(server.url);
    t.after(async () => {
      end();
      await server.stop();
    });
    const limits = { operationTimeoutMs: 3_000 };
    const locations = new ZLinkRedisLocationStore({ ...options, ...limits, keyPrefix: 'restart' });
    const relocations = new ZLinkRedisRelocationStore({ ...options, ...limits, keyPrefix: 'restart-blobs' });
    const work = new Work(locations, relocations, CHAINS);
    work.start();
    for (let round = 0; round < ROUNDS; round++) {
      await work.progress();
      await server.say('kill');
      // Shorter and longer than an operation may take.
      await pause(round === ROUNDS - 1 ? limits.operationTimeoutMs + 500 : Math.random() * 200);
      await server.say('restart');
    }
    await work.progress();
    await work.stop();
    await work.check();
    // What is there is there for another store, and after one more restart, too.
    await server.say('kill');
    await server.say('restart');
    const fresh = { url: server.url, operationTimeoutMs: 10_000 };
    const others = [
      new ZLinkRedisLocationStore({ ...fresh, keyPrefix: 'restart' }),
      new ZLinkRedisRelocationStore({ ...fresh, keyPrefix: 'restart-blobs' }),
    ];
    await work.check(...others);
    t.diagnostic(JSON.stringify(work.counts));
    assert.ok(work.counts.scans > 0 && work.counts.reads > 0);
    assert.ok(work.counts.unknown + work.counts.notApplied > 0, 'the kills were felt');
    await Promise.all([locations, relocations, ...others].map((store) => store.dispose()));
  });
}
