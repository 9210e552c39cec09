// One private Redis for both sides, the rivals' clients, and what rows fill it with.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { GlideClient } from '@valkey/valkey-glide';
import { ZLinkRedisLocationStore, ZLinkRedisRelocationStore } from '@zlink-systems/framework-locations-redis';
import { Project } from '@zlink-systems/project-state';
import { createClient } from 'redis';
import { ROUND_MS, ROUNDS } from './harness.mjs';

const CORE = process.env.ZLINK_BENCH_SERVER_CORE;
const STARTER = fileURLToPath(new URL('../../../target/debug/zlink-test-servers', import.meta.url));
/** More than any row has in flight, for the client refuses what is beyond, and long enough for a busy machine. */
const GLIDE = { inflightRequestsLimit: 4_096, requestTimeout: 30_000 };

export const VALUE = Buffer.alloc(256, 'v');
/** A key of 30 bytes. */
export const name = (i) => `actor/${String(i).padStart(24, '0')}`;
export const put = (key, bytes, retentionMs) => ({ kind: 'put', key: { value: key }, bytes, retentionMs });

const version = (name) => JSON.parse(readFileSync(new URL(`./node_modules/${name}/package.json`, import.meta.url))).version;

export async function startRig() {
  // `../pinned` says which core is the server's.
  const pinned = CORE === undefined ? [] : ['taskset', '-c', CORE];
  const [program, ...options] = [...pinned, STARTER, 'single'];
  const server = spawn(program, options, { stdio: ['pipe', 'pipe', 'inherit'] });
  const line = await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.once('exit', (code) => reject(new Error(`the starter of test servers ended with ${code}`)));
    createInterface(server.stdout).once('line', resolve);
  });
  const { url } = JSON.parse(line);
  const redis = await createClient({ url }).connect();
  const { hostname, port } = new URL(url);
  const glide = await GlideClient.createClient({
    addresses: [{ host: hostname, port: Number(port) }],
    ...GLIDE,
  });
  return new Rig(server, url, redis, glide);
}

class Rig {
  #stores = [];
  #server;

  constructor(server, url, redis, glide) {
    this.#server = server;
    this.url = url;
    this.redis = redis;
    this.glide = glide;
  }

  /** What is measured, and how it is configured. */
  async about() {
    const redis = /redis_version:(\S+)/.exec(await this.redis.info('server'))[1];
    const core = CORE === undefined ? 'on any core' : `on core ${CORE}`;
    return [
      `Node.js ${process.version}, Redis ${redis} without persistence on loopback and ${core}, ${cpus().length} × ${cpus()[0].model}, load ${loadavg()[0].toFixed(1)}, ${ROUNDS} rounds of ${ROUND_MS} ms`,
      `node-redis ${version('redis')}: one client, automatic pipelining, defaults otherwise`,
      `valkey-glide ${version('@valkey/valkey-glide')}: one client, ${JSON.stringify(GLIDE)}, defaults otherwise`,
      `node-redlock ${version('redlock')}: one server, one client of ioredis ${version('ioredis')}, defaults`,
      `@deno/kv ${version('@deno/kv')}: defaults; better-sqlite3 ${version('better-sqlite3')}: WAL, synchronous=FULL; lmdb ${version('lmdb')}: put, then flushed`,
    ];
  }

  locations(keyPrefix) {
    return this.#keep(new ZLinkRedisLocationStore({ url: this.url, keyPrefix, operationTimeoutMs: 30_000 }));
  }

  blobs(keyPrefix) {
    return this.#keep(new ZLinkRedisRelocationStore({ url: this.url, keyPrefix, operationTimeoutMs: 60_000 }));
  }

  project() {
    return this.#keep(new Project({ url: this.url, workspace: 'bench', project: 'bench', operationTimeoutMs: 30_000 }));
  }

  #keep(store) {
    this.#stores.push(store);
    return store;
  }

  /** What every row starts with: nothing. */
  async clear() {
    await Promise.all(this.#stores.splice(0).map((store) => store.dispose()));
    await this.redis.flushAll();
  }

  async info(section, field) {
    return Number(new RegExp(`^${field}:([\\d.]+)`, 'm').exec(await this.redis.info(section))[1]);
  }

  /** Seconds of CPU that the server used so far. */
  serverCpu = async () => (await this.info('cpu', 'used_cpu_sys')) + (await this.info('cpu', 'used_cpu_user'));

  async stop() {
    await this.clear();
    this.redis.destroy();
    this.glide.close();
    this.#server.removeAllListeners('exit').stdin.end();
  }
}

const groups = (count) => Array.from({ length: Math.ceil(count / 1_000) }, (_, group) => Array.from({ length: Math.min(1_000, count - group * 1_000) }, (_, i) => group * 1_000 + i));

/** Puts records 0..count into a Location Store. */
export async function fill(store, count, retentionMs) {
  for (const group of groups(count)) {
    await store.write({ conditions: [], mutations: group.map((i) => put(name(i), VALUE, retentionMs)) });
  }
}

/** The same as plain strings. */
export async function fillPlain(redis, count, retentionMs) {
  for (const group of groups(count)) {
    if (retentionMs === undefined) await redis.mSet(group.map((i) => [name(i), VALUE]));
    else await Promise.all(group.map((i) => redis.set(name(i), VALUE, { expiration: { type: 'PX', value: retentionMs } })));
  }
}

/** Reads all of a Location Store in pages of 1,000; seconds. */
export async function scan(store, count) {
  const began = performance.now();
  let cursor;
  let seen = 0;
  do {
    const result = await store.scan({ prefix: '', cursor, limit: 1_000 });
    if (result.kind !== 'page') throw new Error(`the scan is ${result.kind}`);
    seen += result.value.items.length;
    cursor = result.value.nextCursor;
  } while (cursor);
  if (seen !== count) throw new Error(`the scan gave ${seen} of ${count} records`);
  return (performance.now() - began) / 1_000;
}

/** The same of plain strings, whose names the caller knows; seconds. */
export async function mget(redis, count) {
  const began = performance.now();
  for (const group of groups(count)) await redis.mGet(group.map(name));
  return (performance.now() - began) / 1_000;
}
