// Node.js as a participant (../README.md).
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { pack, unpack } from '../bytes.mjs';

const require = createRequire(new URL('../../../packages/node/package.json', import.meta.url));
const embedded = require('@zlink-systems/framework-locations-embedded');
const redis = require('@zlink-systems/framework-locations-redis');
const { Project } = require('@zlink-systems/project-state');

const stores = new Map();
/** The locks of each invocation, by its number; and leases, by theirs. */
const invocations = new Map();
const leases = new Map();
/** What cancels the requests under way. */
const controllers = new Map();

const store = ({ store }) => stores.get(store);
const text = (value) => ({ value });
const signal = ({ id, cancelled }) => (cancelled ? AbortSignal.abort() : controllers.get(id).signal);

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
  open({ store, kind, engine, address, ...given }) {
    const { id, do: verb, ...options } = given;
    const made = {
      location: {
        redis: () => new redis.ZLinkRedisLocationStore({ url: address, ...options }),
        file: () => new embedded.ZLinkEmbeddedLocationStore({ path: address, ...options }),
      },
      relocation: {
        redis: () => new redis.ZLinkRedisRelocationStore({ url: address, ...options }),
        file: () => new embedded.ZLinkEmbeddedRelocationStore({ path: address, ...options }),
      },
      project: {
        redis: () => new Project({ url: address, ...options }),
        file: () => new Project({ url: `file:${address}`, ...options }),
      },
    }[kind][engine]();
    stores.set(store, made);
    return {};
  },
  async close(request) {
    await store(request).dispose();
    return {};
  },
  cancel(request) {
    controllers.get(request.request)?.abort();
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
  async stateGet(request) {
    const entry = await namespace(request).get(request.key, signal(request));
    return entry === null ? { kind: 'missing' } : entryOf('entry', entry);
  },
  async stateSet(request) {
    const { key, json, expectedVersion, ttlSeconds } = request;
    const options = { expectedVersion, ttlSeconds };
    return entryOf('stored', await namespace(request).set(key, JSON.parse(json), options, signal(request)));
  },
  async stateDelete(request) {
    const { key, expectedVersion } = request;
    const there = await namespace(request).delete(key, { expectedVersion }, signal(request));
    return { kind: there ? 'deleted' : 'missing' };
  },
  async lockAcquire(request) {
    const { key, namespace, waitMs, leaseMs } = request;
    const lease = await locks(request).acquire(key, { namespace, waitMs, leaseMs }, signal(request));
    return lease === null ? { kind: 'unavailable' } : keep(request, lease);
  },
  lockAttach: async (request) => keep(request, await locks(request).attach(request.leaseId, signal(request))),
  async lockRenew(request) {
    const lease = leases.get(request.lease);
    await lease.renew(request.leaseMs, signal(request));
    return { kind: 'renewed', expiresAt: lease.expiresAt };
  },
  async lockRelease(request) {
    await leases.get(request.lease).release(signal(request));
    return { kind: 'released' };
  },
};

const namespace = (request) => store(request).state.namespace(request.namespace);

function entryOf(kind, { value, ...fields }) {
  return { kind, json: JSON.stringify(value), ...fields };
}

/** The locks of an invocation, which begins with the first request that names it; one of a store that was opened anew does so too. */
function locks({ store, invocation, deadline }) {
  const project = stores.get(store);
  if (invocations.get(invocation)?.project !== project) {
    invocations.set(invocation, { project, locks: project.locks({ deadline }) });
  }
  return invocations.get(invocation).locks;
}

function keep({ lease: number }, lease) {
  leases.set(number, lease);
  const { id, key, namespace, fencingToken, expiresAt } = lease;
  return { kind: 'lease', id, key, namespace, fencingToken, expiresAt };
}

/** The errors that are results on the wire. */
const KINDS = { ZLINK_STATE_CONFLICT: 'conflict', ZLINK_RATE_LIMIT: 'limitReached', ZLINK_LOCK_LOST: 'lost' };

function told(error) {
  if (error.name === 'AbortError') return { code: 'CANCELLED', message: error.message };
  const code = /^ZLINK_STORE_([A-Z_]+)$/.exec(error.code)?.[1];
  if (code === undefined) throw error;
  return { code, outcome: error.outcome, argument: error.argument, message: error.message };
}

async function obey(request) {
  let answer;
  controllers.set(request.id, new AbortController());
  try {
    answer = { result: plain(await OBEY[request.do](request)) };
  } catch (error) {
    const kind = KINDS[error.code];
    answer = kind === undefined ? { error: told(error) } : { result: { kind } };
  }
  controllers.delete(request.id);
  process.stdout.write(`${JSON.stringify({ id: request.id, ...answer })}\n`);
}

for await (const line of createInterface({ input: process.stdin })) obey(JSON.parse(line));
