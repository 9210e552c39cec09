import { RESP_TYPES } from 'redis';
import { quantile, ROUND_MS, ROUNDS, row, throughput } from '../harness.mjs';
import { fill, name } from '../rig.mjs';

const RETENTION_MS = 600_000;
const LARGE = 64;
/** How much a round puts at most: what is measured is not how memory fills. */
const MOST_MIB = 768;
const expiration = { type: 'PX', value: RETENTION_MS };

/** Puts one blob after the other, each new; and deletes those that are there. */
function putting(store, payload) {
  let next = 0;
  const there = [];
  return {
    async put() {
      payload.writeUInt32LE(next);
      const reference = { value: `put/${next++}` };
      const { kind } = await store.put(reference, payload, RETENTION_MS);
      if (kind !== 'stored') throw new Error(`a new blob is ${kind}`);
      there.push(reference);
    },
    tidy: () => Promise.all(there.splice(0).map((reference) => store.delete(reference))),
  };
}

export async function blobs(results, rig) {
  const { redis, serverCpu } = rig;
  const binary = redis.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  const store = rig.blobs('bench-blobs');
  for (const mib of [1, LARGE]) {
    const payload = Buffer.alloc(mib << 20, 'b');
    const { put, tidy } = putting(store, payload);
    const most = MOST_MIB / mib;
    // New strings, as the blobs are new: what replaces another finds the server's memory warm.
    let plain = 0;
    const puts = await row(
      { ours: put, plain: () => redis.set(`plain/${plain++}`, payload, { expiration }) },
      1,
      {
        serverCpu,
        most,
        async tidy() {
          await tidy();
          while (plain > 0) await redis.del(`plain/${--plain}`);
        },
      },
    );
    results.speed(`node/blob/put/${mib}`, puts.ours, puts.plain, { scale: mib });
    const reference = { value: `read/${mib}` };
    await store.put(reference, payload, RETENTION_MS);
    await redis.set('plain', payload);
    const whole = (bytes) => {
      if (bytes.length !== payload.length) throw new Error(`${bytes.length} of ${payload.length} bytes`);
    };
    const gets = await row(
      { ours: async () => whole((await store.read(reference)).bytes), plain: async () => whole(await binary.get('plain')) },
      1,
      { serverCpu },
    );
    results.speed(`node/blob/read/${mib}`, gets.ours, gets.plain, { scale: mib });
    await redis.del('plain');
  }
}

export async function beside(results, rig) {
  const KEYS = 10_000;
  const store = rig.locations('bench');
  const blobs = rig.blobs('bench-blobs');
  await fill(store, KEYS);
  const { put, tidy } = putting(blobs, Buffer.alloc(LARGE << 20, 'b'));
  const read = () => store.read({ value: name(Math.floor(Math.random() * KEYS)) });
  const waits = { alone: [], beside: [] };
  const p99 = async () => {
    const all = [];
    await throughput(read, 8, { roundMs: ROUND_MS * 2, waits: all });
    return quantile(all, 0.99);
  };
  let puts = 0;
  await Promise.all([p99(), put()]);
  for (let round = 0; round < ROUNDS; round++) {
    waits.alone.push(await p99());
    let over = false;
    const loop = (async () => {
      for (; !over; puts++) {
        await put();
        await tidy();
      }
    })();
    waits.beside.push(await p99());
    over = true;
    await loop;
  }
  results.figures('node/beside', waits.beside, waits.alone, { remarks: `${puts} puts` });
}
