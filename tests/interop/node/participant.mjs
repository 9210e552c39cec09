// Node.js as a participant (../README.md).
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { pack, unpack } from '../bytes.mjs';

const require = createRequire(new URL('../../../packages/node/package.json', import.meta.url));
const embedded = require('@zlink-systems/framework-locations-embedded');
const redis = require('@zlink-systems/framework-locations-redis');

const stores = new Map();

const store = ({ store }) => stores.get(store);
const text = (value) => ({ value });
const signal = ({ cancelled }) => (cancelled ? AbortSignal.abort() : undefined);

/** A result without the objects that JSON has no form for. */
function plain(value) {
  if (value instanceof Uint8Array) return pack(value);
  if (value instanceof Date) return value.getTime();
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value;
  const names = Object.keys(value);
  if (names.length === 1 && names[0] === 'value' && typeof value.value === 'string') return value.value;
  return Object.fromEntries(names.map((name) => [name, plain(value[name])]));
}

const OBEY = {
  open({ store, kind, engine, address, keyPrefix, operationTimeoutMs }) {
    const options = { keyPrefix, operationTimeoutMs };
    const made = {
      location: {
        redis: () => new redis.ZLinkRedisLocationStore({ url: address, ...options }),
        file: () => new embedded.ZLinkEmbeddedLocationStore({ path: address, ...options }),
      },
      relocation: {
        redis: () => new redis.ZLinkRedisRelocationStore({ url: address, ...options }),
        file: () => new embedded.ZLinkEmbeddedRelocationStore({ path: address, ...options }),
      },
    }[kind][engine]();
    stores.set(store, made);
    return {};
  },
  async close(request) {
    await store(request).dispose();
    return {};
  },
  read: (request) => store(request).read(text(request.key), signal(request)),
  write: (request) =>
    store(request).write(
      {
        conditions: request.conditions.map(({ kind, key, expected }) => ({
          kind,
          key: text(key),
          ...(expected === undefined ? {} : { expected: text(expected) }),
        })),
        mutations: request.mutations.map(({ kind, key, bytes, retentionMs }) => ({
          kind,
          key: text(key),
          ...(bytes === undefined ? {} : { bytes: unpack(bytes) }),
          ...(retentionMs === undefined ? {} : { retentionMs }),
        })),
      },
      signal(request),
    ),
  async scan(request) {
    const { prefix, cursor, limit } = request;
    const asked = { prefix, limit, ...(cursor === undefined ? {} : { cursor: text(cursor) }) };
    const { kind, value } = await store(request).scan(asked, signal(request));
    return { kind, ...value };
  },
  put: (request) =>
    store(request).put(text(request.reference), unpack(request.bytes), request.retentionMs, signal(request)),
  blobRead: (request) => store(request).read(text(request.reference), signal(request)),
  renew: (request) => store(request).renew(text(request.reference), request.retentionMs, signal(request)),
  async blobDelete(request) {
    await store(request).delete(text(request.reference), signal(request));
    return {};
  },
};

function told(error) {
  if (error.name === 'AbortError') return { code: 'CANCELLED', message: error.message };
  const code = /^ZLINK_STORE_([A-Z_]+)$/.exec(error.code)?.[1];
  if (code === undefined) throw error;
  return { code, outcome: error.outcome, argument: error.argument, message: error.message };
}

async function obey(request) {
  let answer;
  try {
    answer = { result: plain(await OBEY[request.do](request)) };
  } catch (error) {
    answer = { error: told(error) };
  }
  process.stdout.write(`${JSON.stringify({ id: request.id, ...answer })}\n`);
}

for await (const line of createInterface({ input: process.stdin })) obey(JSON.parse(line));
