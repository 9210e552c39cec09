// Where stores are opened: one engine, and a spot in it that no other scenario uses.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

// The public packages, as the workspace installs them.
const require = createRequire(new URL('../../../packages/node/package.json', import.meta.url));
const {
  ZLinkEmbeddedLocationStore,
  ZLinkEmbeddedRelocationStore,
} = require('@zlink-systems/framework-locations-embedded');
const { ZLinkRedisLocationStore, ZLinkRedisRelocationStore } = require('@zlink-systems/framework-locations-redis');
const { Project } = require('@zlink-systems/project-state');
export const { stats } = require('@zlink-systems/store-native');
const { createClient } = require(process.env.ZLINK_NODE_REDIS ?? 'redis6');
// Memory that two store objects share has a name, which the public options do not give.
const { embeddedOpening, NativeLocationStore, NativeRelocationStore } = require('@zlink-systems/store-native/internal');

/** What this language can do beyond what all can. */
export const LANGUAGE = ['utf16-strings', 'signed-numbers', 'fractional-numbers', 'json-values'];

let made = 0;
const unique = () => `node-${process.pid}-${made++}`;

/** Places on a Redis, whatever it is made of. */
const onRedis = {
  capabilities: ['survives-reopen', 'needs-key-prefix'],
  place: ({ url }) => ({
    inFront: `${unique()}.`,
    make: (store, options) =>
      ({
        location: () => new ZLinkRedisLocationStore({ url, ...options }),
        relocation: () => new ZLinkRedisRelocationStore({ url, ...options }),
        project: () => new Project({ url, ...options }),
      })[store](),
    end() {},
  }),
};

const ALL = {
  memory: {
    capabilities: [],
    place() {
      const name = unique();
      return {
        inFront: '',
        make(store, options) {
          if (store === 'project') return new Project({ url: `memory:${name}`, ...options });
          const opening = () => {
            const { settings } = embeddedOpening(options);
            return { settings: { ...settings, memory: name } };
          };
          return store === 'location' ? new NativeLocationStore(opening) : new NativeRelocationStore(opening);
        },
        end() {},
      };
    },
  },
  file: {
    capabilities: ['survives-reopen'],
    place() {
      const path = mkdtempSync(join(tmpdir(), 'zlink-conformance-'));
      return {
        inFront: '',
        make: (store, options) =>
          ({
            location: () => new ZLinkEmbeddedLocationStore({ path, ...options }),
            relocation: () => new ZLinkEmbeddedRelocationStore({ path, ...options }),
            project: () => new Project({ url: `file:${path}`, ...options }),
          })[store](),
        end: () => rmSync(path, { recursive: true, force: true }),
      };
    },
  },
  redis: { servers: ['single'], ...onRedis },
  // The same over a client of node-redis that all stores share; projects take none (tests/conformance/stores.mjs).
  'redis-client': {
    servers: ['single'],
    capabilities: ['survives-reopen', 'needs-key-prefix'],
    place: ({ client }) => ({
      inFront: `${unique()}.`,
      make: (store, options) =>
        store === 'location'
          ? new ZLinkRedisLocationStore({ client, ...options })
          : new ZLinkRedisRelocationStore({ client, ...options }),
      end() {},
    }),
  },
  sentinel: { servers: ['sentinel', '--tls', '--password', 'of-all'], ...onRedis },
  cluster: { servers: ['cluster', '--tls', '--password', 'of-all'], ...onRedis },
};

const chosen = process.env.ZLINK_ENGINES?.split(',') ?? ['memory', 'file', 'redis', 'redis-client'];

/** The engines of this run: `ZLINK_ENGINES=sentinel,cluster` for those that take more servers. */
export const ENGINES = Object.fromEntries(chosen.map((name) => [name, ALL[name]]));

/** A private Redis, or several that belong together, which end with this process whatever ends that. */
export async function startRedis(kind = ['single']) {
  const program = fileURLToPath(new URL('../../../target/debug/zlink-test-servers', import.meta.url));
  const starter = spawn(program, kind, { stdio: ['pipe', 'pipe', 'inherit'] });
  starter.once('error', (error) => {
    console.error(`cargo build -p zlink-test-servers: ${error.message}`);
  });
  const lines = createInterface({ input: starter.stdout });
  const [line] = await Promise.race([
    once(lines, 'line'),
    once(starter, 'exit').then(([code]) => Promise.reject(new Error(`the starter of test servers ended with ${code}`))),
  ]);
  const { url } = JSON.parse(line);
  const client = kind[0] === 'single' ? createClient({ url }) : undefined;
  return {
    url,
    client,
    async stop() {
      // Stores never close it.
      if (client?.isOpen) client.destroy();
      starter.stdin.end();
      if (starter.exitCode === null) await once(starter, 'exit');
    },
  };
}
