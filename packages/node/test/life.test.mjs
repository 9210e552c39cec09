// When a process ends, with and without stores (F32), and worker threads that end at any moment (F33).
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
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
      assert.deepEqual(ended(await run(`require(${JSON.stringify(name)})`, { module: false })), good);
      assert.deepEqual(ended(await run(`await import(${JSON.stringify(name)})`)), good);
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

    test(`ends with its own code after an uncaught exception (${kind})`, async () => {
      const { code, signal, stderr } = await script(
        `${OPERATIONS} process.nextTick(() => { throw new Error('of the caller'); });`,
      );
      assert.deepEqual({ code, signal }, { code: 1, signal: null });
      assert.match(stderr, /Error: of the caller/);
      const own = `process.on('uncaughtException', () => process.exit(9)); ${OPERATIONS}`;
      const end = await script(`${own} setImmediate(() => { throw new Error('of the caller'); });`);
      assert.deepEqual(ended(end), { code: 9, signal: null, stderr: '' });
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

describe('a process with operations that nobody answers', () => {
  const sockets = new Set();
  const silent = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
  });
  const ports = {};
  before(async () => {
    const listening = (server) => new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    await listening(silent);
    const gone = createServer();
    await listening(gone);
    ports['that refuses'] = gone.address().port;
    ports['that is silent'] = silent.address().port;
    await new Promise((resolve) => gone.close(resolve));
  });
  after(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });

  // Far longer than a process of these tests may live.
  const FOREVER_MS = 600_000;
  const operations = (port, operationTimeoutMs) => `
    const { ZLinkRedisLocationStore, ZLinkRedisRelocationStore } = require(${JSON.stringify(redisPackage)});
    const settings = { url: 'redis://127.0.0.1:${port}', operationTimeoutMs: ${operationTimeoutMs} };
    const store = new ZLinkRedisLocationStore({ ...settings, keyPrefix: 'life' });
    const blobs = new ZLinkRedisRelocationStore({ ...settings, keyPrefix: 'life-blobs' });
    const operations = [
      store.read({ value: 'a' }),
      store.write({ conditions: [], mutations: [{ kind: 'put', key: { value: 'a' }, bytes: new Uint8Array(9) }] }),
      store.scan({ prefix: '', limit: 1 }),
      blobs.put({ value: 'b' }, new Uint8Array(3 << 20), 60000),
      blobs.read({ value: 'b' }),
      blobs.renew({ value: 'b' }, 60000),
      blobs.delete({ value: 'b' }),
    ];
    const ends = Promise.allSettled(operations);`;

  for (const server of ['that refuses', 'that is silent']) {
    const script = (body, operationTimeoutMs = FOREVER_MS) =>
      run(`${operations(ports[server], operationTimeoutMs)} ${body}`, { module: false });

    test(`lives until all have ended, and no longer (a server ${server})`, async () => {
      const end = await script(
        `ends.then((ends) => console.log(ends.every(({ reason }) => /UNAVAILABLE|TIMEOUT/.test(reason.code))));`,
        700,
      );
      assert.deepEqual({ ...ended(end), stdout: end.stdout }, { ...good, stdout: 'true\n' });
    });

    test(`may await one at its top level (a server ${server})`, async () => {
      const end = await run(
        `import { createRequire } from 'node:module';
        const require = createRequire(import.meta.url);
        ${operations(ports[server], 700)}
        await ends;
        console.log('awaited');`,
      );
      assert.deepEqual({ ...ended(end), stdout: end.stdout }, { ...good, stdout: 'awaited\n' });
    });

    test(`ends when all were aborted (a server ${server})`, async () => {
      const end = await run(
        `const { ZLinkRedisLocationStore } = require(${JSON.stringify(redisPackage)});
        const store = new ZLinkRedisLocationStore({
          url: 'redis://127.0.0.1:${ports[server]}', keyPrefix: 'life', operationTimeoutMs: ${FOREVER_MS} });
        const controller = new AbortController();
        const reads = Array.from({ length: 10 }, () => store.read({ value: 'a' }, controller.signal));
        Promise.allSettled(reads).then((ends) => console.log(ends.every(({ reason }) => reason === 'enough')));
        setTimeout(() => controller.abort('enough'), 100);`,
        { module: false },
      );
      assert.deepEqual({ ...ended(end), stdout: end.stdout }, { ...good, stdout: 'true\n' });
    });

    test(`may call process.exit (a server ${server})`, async () => {
      for (const exit of [
        'process.exit(0)',
        'setImmediate(() => process.exit(0))',
        'setTimeout(() => process.exit(0), 100)',
      ]) {
        assert.deepEqual(ended(await script(exit)), good);
      }
      const { code, stderr } = await script('setTimeout(() => process.exit(7), 100)');
      assert.deepEqual({ code, stderr }, { code: 7, stderr: '' });
    });

    test(`ends with its own code after an uncaught exception (a server ${server})`, async () => {
      const { code, signal, stderr } = await script(`setTimeout(() => { throw new Error('of the caller'); }, 100);`);
      assert.deepEqual({ code, signal }, { code: 1, signal: null });
      assert.match(stderr, /Error: of the caller/);
      const own = await script(`
        process.on('uncaughtException', () => process.exit(9));
        setTimeout(() => { throw new Error('of the caller'); }, 100);`);
      assert.deepEqual(ended(own), { code: 9, signal: null, stderr: '' });
    });

    test(`keeps the exit code that it was given (a server ${server})`, async () => {
      assert.deepEqual(ended(await script('process.exitCode = 5;', 700)), { code: 5, signal: null, stderr: '' });
    });

    test(`may begin more while it exits (a server ${server})`, async () => {
      const end = await script(`
        process.on('exit', () => { store.read({ value: 'late' }); store.dispose(); });
        setTimeout(() => process.exit(0), 50);`);
      assert.deepEqual(ended(end), good);
    });

    test(`disposes, and ends (a server ${server})`, async () => {
      const end = await script(
        `Promise.all([store.dispose(), blobs.dispose()]).then(() => console.log('disposed'));`,
        700,
      );
      assert.deepEqual({ ...ended(end), stdout: end.stdout }, { ...good, stdout: 'disposed\n' });
    });
  }
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
