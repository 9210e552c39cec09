// Node on Redis and embedded, against what people would write by hand. `node bench.mjs [part …]`, parts: read, write, blob, scan, embedded.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { createClient } from 'redis';
import { GlideClient } from '@valkey/valkey-glide';
import { ZLinkRedisLocationStore, ZLinkRedisRelocationStore } from '@zlink-systems/framework-locations-redis';
import { Table, median, quantile, row } from './harness.mjs';

const parts = new Set(process.argv.slice(2));
const wanted = (part) => parts.size === 0 || parts.has(part);
const require = createRequire(import.meta.url);
const version = (name) => require(`${name}/package.json`).version;

// One private Redis for both sides.
const starter = fileURLToPath(new URL('../../../target/debug/zlink-test-servers', import.meta.url));
const server = spawn(starter, ['single'], { stdio: ['pipe', 'pipe', 'inherit'] });
const { url } = JSON.parse(await new Promise((resolve) => createInterface(server.stdout).once('line', resolve)));

const redis = await createClient({ url }).connect();
const at = new URL(url);
const glide = await GlideClient.createClient({ addresses: [{ host: at.hostname, port: Number(at.port) }] });
const locations = new ZLinkRedisLocationStore({ url, keyPrefix: 'bench', operationTimeoutMs: 30_000 });
const blobs = new ZLinkRedisRelocationStore({ url, keyPrefix: 'bench-blobs', operationTimeoutMs: 60_000 });
const table = new Table();

const serverCpu = async () => {
  const info = await redis.info('cpu');
  return ['used_cpu_sys', 'used_cpu_user'].reduce((sum, name) => sum + Number(info.match(new RegExp(`^${name}:([\\d.]+)`, 'm'))[1]), 0);
};

console.log(`Node ${process.version}; node-redis ${version('redis')} (defaults: automatic pipelining, RESP ${3}), valkey-glide 2 (defaults), Redis ${(await redis.info('server')).match(/redis_version:(\S+)/)[1]}`);

const KEYS = 10_000;
const value = Buffer.alloc(256, 'v');
const name = (i) => `actor/${String(i).padStart(24, '0')}`; // 30 bytes
const pick = () => Math.floor(Math.random() * KEYS);

for (let from = 0; from < KEYS; from += 500) {
  const put = Array.from({ length: 500 }, (_, i) => ({ kind: 'put', key: { value: name(from + i) }, bytes: value }));
  await locations.write({ conditions: [], mutations: put });
  await redis.mSet(Array.from({ length: 500 }, (_, i) => [`plain:${name(from + i)}`, value]));
}

if (wanted('read')) {
  for (const [inFlight, goal, goalGlide] of [[1, '≥ 0.9×', '—'], [64, '≥ 3× (2× now)', '≥ 2×'], [1_024, '≥ 4×', '≥ 2×']]) {
    const result = await row({
      ours: () => locations.read({ value: name(pick()) }),
      'node-redis GET': () => redis.get(`plain:${name(pick())}`),
      'valkey-glide GET': () => glide.get(`plain:${name(pick())}`),
    }, inFlight, { serverCpu });
    const cpu = `server CPU per read ${result.ours.cpuUs.toFixed(2)} µs against ${result['node-redis GET'].cpuUs.toFixed(2)} µs`;
    table.add(`read 256 B, ${inFlight} in flight`, result.ours.perSecond, result['node-redis GET'].perSecond, 'ops/s', 'node-redis GET', goal, cpu);
    table.add(`read 256 B, ${inFlight} in flight`, result.ours.perSecond, result['valkey-glide GET'].perSecond, 'ops/s', 'valkey-glide GET', goalGlide);
  }
}

if (wanted('write')) {
  const put = await row({
    ours: (lane) => locations.write({ conditions: [], mutations: [{ kind: 'put', key: { value: name(pick()) }, bytes: value }] }),
    'node-redis SET': () => redis.set(`plain:${name(pick())}`, value),
  }, 64, { serverCpu });
  table.add('put, 64 in flight', put.ours.perSecond, put['node-redis SET'].perSecond, 'ops/s', 'node-redis SET', '≥ 1.5×', `server CPU per put ${put.ours.cpuUs.toFixed(2)} µs`);
  const versions = [];
  const cas = await row({
    ours: async (lane) => {
      const key = { value: `cas/${lane}` };
      const condition = versions[lane] ? { kind: 'version', key, expected: versions[lane] } : { kind: 'missing', key };
      const result = await locations.write({ conditions: [condition], mutations: [{ kind: 'put', key, bytes: value }] });
      if (result.kind !== 'applied') throw new Error('a conflict on a key of one writer');
      versions[lane] = result.putVersions[0].version;
    },
    'node-redis SET': () => redis.set(`plain:${name(pick())}`, value),
  }, 64);
  table.add('CAS, 64 in flight', cas.ours.perSecond, cas['node-redis SET'].perSecond, 'ops/s', 'node-redis SET', '≥ 1.5×');
  for (const [count, size, goal] of [[100, 256, '≥ 0.7×'], [2_048, 1_024, '≥ 0.5×']]) {
    const bytes = Buffer.alloc(size, 'w');
    const mutations = Array.from({ length: count }, (_, i) => ({ kind: 'put', key: { value: name(i) }, bytes }));
    const pairs = Array.from({ length: count }, (_, i) => [`plain:${name(i)}`, bytes]);
    const result = await row({
      ours: () => locations.write({ conditions: [], mutations }),
      'node-redis MSET': () => redis.mSet(pairs),
    }, 8);
    table.add(`commit of ${count} puts of ${size} B`, result.ours.perSecond, result['node-redis MSET'].perSecond, 'commits/s', 'node-redis MSET', goal);
  }
}

if (wanted('blob')) {
  for (const mib of [1, 64]) {
    const payload = Buffer.alloc(mib << 20);
    let next = 0;
    const put = await row({
      ours: async () => {
        payload.writeUInt32LE(next);
        const reference = { value: `blob/${next++}` };
        await blobs.put(reference, payload, 60_000);
        if (mib === 64) await blobs.delete(reference);
      },
      'node-redis SET': () => redis.set('plain:blob', payload, { expiration: { type: 'PX', value: 60_000 } }),
    }, 1);
    table.add(`blob put ${mib} MiB`, put.ours.perSecond * mib, put['node-redis SET'].perSecond * mib, 'MiB/s', 'node-redis SET', '≥ 1×');
    await blobs.put({ value: `blob/read/${mib}` }, payload, 600_000);
    await redis.set('plain:blob', payload);
    const get = await row({
      ours: () => blobs.read({ value: `blob/read/${mib}` }),
      'node-redis GET': () => redis.withTypeMapping({ 36: Buffer }).get('plain:blob'),
    }, 1);
    table.add(`blob read ${mib} MiB`, get.ours.perSecond * mib, get['node-redis GET'].perSecond * mib, 'MiB/s', 'node-redis GET', '≥ 1×');
  }
}

if (wanted('scan')) {
  await redis.flushDb();
  const RECORDS = 100_000;
  const usage = async () => Number((await redis.info('memory')).match(/^used_memory:(\d+)/m)[1]);
  const fill = async (prefix, put) => {
    const before = await usage();
    for (let from = 0; from < RECORDS; from += 1_000) await put(prefix, from);
    return ((await usage()) - before) / RECORDS;
  };
  const scanned = new ZLinkRedisLocationStore({ url, keyPrefix: 'scan', operationTimeoutMs: 30_000 });
  const perRecord = await fill('', (_, from) => scanned.write({
    conditions: [],
    mutations: Array.from({ length: 1_000 }, (_, i) => ({ kind: 'put', key: { value: name(from + i) }, bytes: value })),
  }));
  const perString = await fill('', (_, from) => redis.mSet(Array.from({ length: 1_000 }, (_, i) => [name(from + i), value])));
  table.add('server memory per durable record (256 B, 30 B key)', perRecord, perString, 'B', 'a plain string key', '≤ 1.4×, ≤ 620 B');

  const pinger = await createClient({ url }).connect();
  const pings = async (stop) => {
    const waits = [];
    while (!stop()) {
      const began = performance.now();
      await pinger.ping();
      waits.push(performance.now() - began);
    }
    return waits;
  };
  const scan = async () => {
    const began = performance.now();
    let cursor;
    let count = 0;
    do {
      const result = await scanned.scan({ prefix: '', cursor, limit: 1_000 });
      if (result.kind !== 'page') throw new Error('expired');
      count += result.value.items.length;
      cursor = result.value.nextCursor;
    } while (cursor);
    if (count !== RECORDS) throw new Error(`${count} of ${RECORDS} records`);
    return (performance.now() - began) / 1_000;
  };
  const mget = async () => {
    const began = performance.now();
    for (let from = 0; from < RECORDS; from += 1_000) await redis.mGet(Array.from({ length: 1_000 }, (_, i) => name(from + i)));
    return (performance.now() - began) / 1_000;
  };
  const times = { scan: [], mget: [] };
  await scan();
  for (let round = 0; round < 3; round++) {
    times.scan.push(await scan());
    times.mget.push(await mget());
  }
  table.add('full scan of 100k records, pages of 1,000', RECORDS / median(times.scan), RECORDS / median(times.mget), 'items/s', 'node-redis MGET by 1,000', '≥ 0.5×, ≤ 3 s', `${median(times.scan).toFixed(2)} s`);
  // The PING of another process, so that this one's event loop is not what is measured.
  const other = spawn(process.execPath, [fileURLToPath(new URL('./pings.mjs', import.meta.url)), url], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface(other.stdout)[Symbol.asyncIterator]();
  const measured = async (work) => {
    other.stdin.write('begin\n');
    await work();
    other.stdin.write('end\n');
    return JSON.parse((await lines.next()).value);
  };
  const idle = await measured(() => new Promise((resolve) => setTimeout(resolve, 3_000)));
  const busy = await measured(async () => { for (let i = 0; i < 3; i++) await scan(); });
  other.stdin.end();
  table.note('PING of another client, p99.9: idle; during scans', `${quantile(idle, 0.999).toFixed(2)} ms; ${quantile(busy, 0.999).toFixed(2)} ms`, '≤ idle + 3 ms');
  pinger.destroy();
  await scanned.dispose();
}

if (wanted('embedded')) await (await import('./embedded.mjs')).embedded(table);

table.print();
await locations.dispose();
await blobs.dispose();
redis.destroy();
glide.close();
server.stdin.end();
