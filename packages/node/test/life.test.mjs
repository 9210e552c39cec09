// When a process ends, with and without stores (F32), and worker threads that end at any moment (F33).
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { ZLinkRedisLocationStore } from '@zlink-systems/framework-locations-redis';
import { collectGarbage } from './support/memory.mjs';
import { startProxy, until } from './support/proxy.mjs';
import { startRedis } from './support/redis.mjs';
import { embedded, native, redis as redisPackage, run } from './support/scripts.mjs';

const key = (value) => ({ value });
const good = { code: 0, signal: null, stderr: '' };
const ended = ({ code, signal, stderr }) => ({ code, signal, stderr });

/** What makes a store of each kind in a program of its own. */
const kinds = (url, folder) => ({
  memory: `new (require(${JSON.stringify(embedded)}).ZLinkEmbeddedLocationStore)()`,
  folder: `new (require(${JSON.stringify(embedded)}).ZLinkEmbeddedLocationStore)({ path: ${JSON.stringify(folder)} })`,
  redis: `new (require(${JSON.stringify(redisPackage)}).ZLinkRedisLocationStore)({ url: '${url}', keyPrefix: 'life' })`,
});

describe('a process', () => {
  let server;
  let folder;
  let stores;
  before(async () => {
    server = await startRedis();
    folder = mkdtempSync(join(tmpdir(), 'zlink-life-'));
    stores = kinds(server.url, join(folder, 'data'));
  });
  after(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const OPERATIONS = `
    const operations = Array.from({ length: 10 }, (_, i) => store.write({
      conditions: [], mutations: [{ kind: 'put', key: { value: 'k' + i }, bytes: new Uint8Array(9) }] }));`;

  test('ends by itself after only importing the packages', async () => {
    for (const name of [embedded, redisPackage, native]) {
      assert.deepEqual(ended(await run(`require(${JSON.stringify(name)})`, { module: false, ms: 5_000 })), good);
      assert.deepEqual(ended(await run(`await import(${JSON.stringify(name)})`, { ms: 5_000 })), good);
    }
  });

  for (const kind of ['memory', 'folder', 'redis']) {
    const script = (body) => run(`(async () => { const store = ${stores[kind]}; ${body} })()`, { module: false });

    test(`with a store (${kind}) that was never used ends by itself`, async () => {
      assert.deepEqual(ended(await script('')), good);
    });

    test(`with an idle store (${kind}) that was not disposed ends by itself`, async () => {
      const end = await script(`${OPERATIONS} await Promise.all(operations); console.log('done');`);
      assert.deepEqual({ ...ended(end), stdout: end.stdout }, { ...good, stdout: 'done\n' });
    });

    test(`lives while operations are under way (${kind})`, async () => {
      const end = await script(`${OPERATIONS} Promise.all(operations).then(() => console.log('all answered'));`);
      assert.deepEqual({ ...ended(end), stdout: end.stdout }, { ...good, stdout: 'all answered\n' });
    });

    test(`ends within a second after dispose with 100 operations under way (${kind})`, async () => {
      const end = await script(`
        const reads = Array.from({ length: 100 }, (_, i) => store.read({ value: 'k' + i }));
        await store.dispose();
        await store.dispose();
        const kinds = new Set((await Promise.all(reads)).map((result) => result.kind));
        const before = Date.now();
        process.on('exit', () => console.log([...kinds].every(Boolean), Date.now() - before < 1000));`);
      assert.deepEqual({ ...ended(end), stdout: end.stdout }, { ...good, stdout: 'true true\n' });
    });

    test(`may call process.exit with operations under way (${kind})`, async () => {
      for (const when of ['', 'setTimeout(', 'setImmediate(']) {
        const exit = when === '' ? 'process.exit(0)' : `${when}() => process.exit(0))`;
        assert.deepEqual(ended(await script(`${OPERATIONS} ${exit}`)), good);
      }
    });
  }

  test('leaves no open handle for a test runner to find', async () => {
    const end = await run(
      `(async () => {
        const store = ${stores.redis};
        await store.read({ value: 'a' });
        await store.dispose();
        const resources = process.getActiveResourcesInfo().filter((name) => !/TTY|Pipe/.test(name));
        console.log(JSON.stringify(resources));
      })()`,
      { module: false },
    );
    assert.deepEqual({ ...ended(end), stdout: end.stdout }, { ...good, stdout: '[]\n' });
  });

  test('loads the packages again after its module cache was cleared, 50 times, without piling up connections', async () => {
    const proxy = await startProxy(server.port);
    const end = await run(
      `(async () => {
        for (let round = 0; round < 50; round++) {
          for (const name of Object.keys(require.cache)) delete require.cache[name];
          const { ZLinkRedisLocationStore } = require(${JSON.stringify(redisPackage)});
          const store = new ZLinkRedisLocationStore({ url: '${proxy.url}', keyPrefix: 'again' });
          await store.read({ value: 'a' });
          if (round % 2) await store.dispose();
        }
        console.log('done');
      })()`,
      { module: false },
    );
    assert.deepEqual({ ...ended(end), stdout: end.stdout }, { ...good, stdout: 'done\n' });
    await until(() => proxy.connections === 0);
    await proxy.stop();
  });

  test('that forgets its stores gives up their connections', async () => {
    const proxy = await startProxy(server.port);
    await (async () => {
      for (let i = 0; i < 20; i++) {
        const store = new ZLinkRedisLocationStore({ url: proxy.url, keyPrefix: `forgotten-${i}` });
        await store.read(key('a'));
      }
    })();
    assert.ok(proxy.connections > 0);
    await until(() => {
      collectGarbage();
      return proxy.connections === 0;
    });
    await proxy.stop();
  });
});

describe('worker threads', () => {
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

  const busy = (url) => `
    const { parentPort } = require('node:worker_threads');
    const { ZLinkRedisLocationStore, ZLinkRedisRelocationStore } = require(${JSON.stringify(redisPackage)});
    const { ZLinkEmbeddedLocationStore } = require(${JSON.stringify(embedded)});
    const locations = new ZLinkRedisLocationStore({ url: '${url}', keyPrefix: 'workers' });
    const blobs = new ZLinkRedisRelocationStore({ url: '${url}', keyPrefix: 'worker-blobs' });
    const memory = new ZLinkEmbeddedLocationStore();
    const payload = new Uint8Array(3 << 20);
    const put = (value) => ({ conditions: [], mutations: [{ kind: 'put', key: { value }, bytes: new Uint8Array(99) }] });
    const loop = async (work) => { for (let i = 0; ; i++) await work(i); };
    for (let lane = 0; lane < 16; lane++) {
      loop((i) => locations.read({ value: 'k' + (i % 99) }));
      loop((i) => locations.write(put('k' + lane)));
      loop((i) => memory.write(put('k' + i % 99)));
    }
    loop((i) => locations.scan({ prefix: '', limit: 10 }));
    loop((i) => blobs.put({ value: 'b' + i + Math.random() }, payload, 60000));
    parentPort.postMessage('busy');`;

  test('terminated at random, 50 of them, harm nobody', async () => {
    const store = new ZLinkRedisLocationStore({ url: proxy.url, keyPrefix: 'main' });
    await store.read(key('a'));
    let reads = 0;
    let over = false;
    const reading = (async () => {
      while (!over) {
        assert.equal((await store.read(key('a'))).kind, 'missing');
        reads++;
      }
    })();
    for (let round = 0; round < 10; round++) {
      const workers = Array.from({ length: 5 }, () => new Worker(busy(proxy.url), { eval: true }));
      await Promise.all(
        workers.map(async (worker) => {
          const failed = new Promise((_, reject) => worker.once('error', reject));
          await Promise.race([new Promise((resolve) => worker.once('message', resolve)), failed]);
          await pause(Math.random() * 40);
          await worker.terminate();
        }),
      );
    }
    over = true;
    await reading;
    assert.ok(reads > 0);
    await store.dispose();
    await until(() => proxy.connections === 0, 20_000);
  });

  test('only in workers, the library works, and the process ends as it should', async () => {
    const end = await run(
      `const { Worker } = require('node:worker_threads');
      (async () => {
        for (let round = 0; round < 4; round++) {
          await Promise.all(Array.from({ length: 5 }, async () => {
            const worker = new Worker(${JSON.stringify(busy(proxy.url))}, { eval: true });
            await new Promise((resolve) => worker.once('message', resolve));
            await new Promise((resolve) => setTimeout(resolve, Math.random() * 30));
            await worker.terminate();
          }));
        }
        console.log('done');
      })()`,
      { module: false, ms: 60_000 },
    );
    assert.deepEqual({ ...ended(end), stdout: end.stdout }, { ...good, stdout: 'done\n' });
  });

  test('process.exit in the main thread while workers are busy', async () => {
    const end = await run(
      `const { Worker } = require('node:worker_threads');
      const workers = Array.from({ length: 4 }, () => new Worker(${JSON.stringify(busy(proxy.url))}, { eval: true }));
      Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('message', resolve)))).then(() => {
        setTimeout(() => process.exit(0), 20);
      });`,
      { module: false },
    );
    assert.deepEqual(ended(end), good);
  });

  test('a worker that has nothing more to do ends by itself', async () => {
    const worker = new Worker(
      `const { ZLinkRedisLocationStore } = require(${JSON.stringify(redisPackage)});
      const store = new ZLinkRedisLocationStore({ url: '${proxy.url}', keyPrefix: 'w' });
      store.read({ value: 'a' }).then(({ kind }) => require('node:worker_threads').parentPort.postMessage(kind));`,
      { eval: true },
    );
    const messages = [];
    worker.on('message', (message) => messages.push(message));
    assert.equal(await new Promise((resolve) => worker.once('exit', resolve)), 0);
    assert.deepEqual(messages, ['missing']);
  });
});
