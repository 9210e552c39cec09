import { row } from '../harness.mjs';
import { fill, fillPlain, name, put, VALUE } from '../rig.mjs';

const KEYS = 10_000;
const IN_FLIGHT = 64;
const pick = () => name(Math.floor(Math.random() * KEYS));
const write = (store, ...mutations) => store.write({ conditions: [], mutations });

export async function puts(results, rig) {
  const { redis, serverCpu } = rig;
  const store = rig.locations('bench');
  await fill(store, KEYS);
  await fillPlain(redis, KEYS);
  const { ours, set, both } = await row(
    {
      ours: () => write(store, put(pick(), VALUE)),
      set: () => redis.set(pick(), VALUE),
      both: () => {
        const key = pick();
        return Promise.all([redis.set(key, VALUE), redis.zAdd('index', { score: 0, value: key })]);
      },
    },
    IN_FLIGHT,
    { serverCpu },
  );
  results.speed('node/put/64', ours, set);
  results.figures('node/server-cpu/put', ours.serverUs, both.serverUs);
}

export async function cas(results, rig) {
  const { redis, serverCpu } = rig;
  const store = rig.locations('bench');
  await fillPlain(redis, KEYS);
  const versions = [];
  const { ours, set } = await row(
    {
      ours: async (lane) => {
        const key = { value: `cas/${lane}` };
        const expected = versions[lane];
        const condition = expected ? { kind: 'version', key, expected } : { kind: 'missing', key };
        const result = await store.write({ conditions: [condition], mutations: [put(key.value, VALUE)] });
        if (result.kind !== 'applied') throw new Error('a conflict on a key of one writer');
        versions[lane] = result.putVersions[0].version;
      },
      set: () => redis.set(pick(), VALUE),
    },
    IN_FLIGHT,
    { serverCpu },
  );
  results.speed('node/cas/64', ours, set);
}

export async function commits(results, rig) {
  const { redis, serverCpu } = rig;
  const store = rig.locations('bench');
  for (const [count, size, inFlight] of [
    [100, 256, 8],
    [2_048, 1_024, 4],
  ]) {
    const bytes = Buffer.alloc(size, 'w');
    // Every lane has keys of its own, so that commits in flight have nothing to do with each other.
    const keys = Array.from({ length: inFlight }, (_, lane) => Array.from({ length: count }, (_, i) => `${lane}/${name(i)}`));
    const mutations = keys.map((keys) => keys.map((key) => put(key, bytes)));
    const pairs = keys.map((keys) => keys.map((key) => [key, bytes]));
    const { ours, mset } = await row(
      { ours: (lane) => write(store, ...mutations[lane]), mset: (lane) => redis.mSet(pairs[lane]) },
      inFlight,
      { serverCpu },
    );
    results.speed(`node/commit/${count}`, ours, mset, { remarks: `${inFlight} in flight` });
  }
}
