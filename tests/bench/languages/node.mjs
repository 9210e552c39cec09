// Node.js (bench.mjs).
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(new URL('../../../packages/node/package.json', import.meta.url));
const embedded = require('@zlink-systems/framework-locations-embedded');
const redis = require('@zlink-systems/framework-locations-redis');

const [url, keyPrefix] = process.argv.slice(2);
const options = { url, keyPrefix, operationTimeoutMs: 60_000 };
const ENGINES = {
  redis: [new redis.ZLinkRedisLocationStore(options), new redis.ZLinkRedisRelocationStore(options)],
  memory: [new embedded.ZLinkEmbeddedLocationStore({}), new embedded.ZLinkEmbeddedRelocationStore({})],
};
const KEYS = Array.from({ length: 1_000 }, (_, at) => ({ value: `k${at}` }));
const VALUE = new Uint8Array(256);
const BLOB = new Uint8Array(64 * 1024 * 1024);
const HOUR = 3_600_000;
const there = { value: 'there' };
const fresh = { value: 'fresh' };

const put = (key) => ({ kind: 'put', key, bytes: VALUE });
const WORK = {
  read: ([records], at) => records.read(KEYS[at]),
  put: ([records], at) => records.write({ conditions: [], mutations: [put(KEYS[at])] }),
  'blob-read': ([, blobs]) => blobs.read(there),
  // A put of bytes that are there would move none of them.
  'blob-put': async ([, blobs]) => {
    await blobs.delete(fresh);
    await blobs.put(fresh, BLOB, HOUR);
  },
};

for (const [records, blobs] of Object.values(ENGINES)) {
  await records.write({ conditions: [], mutations: KEYS.map(put) });
  await blobs.put(there, BLOB, HOUR);
}
for await (const line of createInterface({ input: process.stdin })) {
  const [what, engine, inFlight, seconds] = line.split(' ');
  const [stores, work] = [ENGINES[engine], WORK[what]];
  const began = performance.now();
  const end = began + seconds * 1_000;
  let done = 0;
  const loop = async (lane) => {
    for (let at = lane; performance.now() < end; at++, done++) await work(stores, at % KEYS.length);
  };
  await Promise.all(Array.from({ length: Number(inFlight) }, (_, lane) => loop(lane)));
  console.log(done / ((performance.now() - began) / 1_000));
}
process.exit();
