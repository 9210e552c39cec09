import { Redis } from 'ioredis';
import Redlock from 'redlock';
import { pause, row } from '../harness.mjs';

const IN_FLIGHT = 64;
const KEYS = 10_000;
const LEASE_MS = 30_000;

export async function locks(results, rig) {
  const { serverCpu } = rig;
  const project = rig.project();
  // An invocation has 16 leases at most: each lane is one.
  const invocations = Array.from({ length: IN_FLIGHT }, () => project.locks());
  const client = new Redis(rig.url);
  const redlock = new Redlock([client]);
  try {
    for (const inFlight of [1, IN_FLIGHT]) {
      const { ours, theirs } = await row(
        {
          async ours(lane) {
            const lease = await invocations[lane].acquire(`lock/${lane}`, { leaseMs: LEASE_MS });
            if (lease === null) throw new Error('a lock of one lane is held');
            await lease.release();
          },
          async theirs(lane) {
            const lock = await redlock.acquire([`lock/${lane}`], LEASE_MS);
            await lock.release();
          },
        },
        inFlight,
        { serverCpu },
      );
      results.speed(`node/lock/${inFlight}`, ours, theirs);
    }
  } finally {
    client.disconnect();
  }
}

export async function state(results, rig) {
  const { redis, serverCpu } = rig;
  const namespace = rig.project().state.namespace('bench');
  const value = { cursor: 'next-page', done: 17, tags: ['a', 'b'], note: 'x'.repeat(180) };
  const key = (i) => `cursor/${String(i).padStart(8, '0')}`;
  const pick = () => key(Math.floor(Math.random() * KEYS));
  for (let from = 0; from < KEYS; from += 1_000) {
    const keys = Array.from({ length: 1_000 }, (_, i) => key(from + i));
    await Promise.all(keys.map((one) => namespace.set(one, value)));
    await redis.mSet(keys.map((one) => [one, JSON.stringify(value)]));
  }
  const whole = (read) => {
    if (read.done !== value.done) throw new Error('another value');
  };
  const gets = await row(
    {
      ours: async () => whole((await namespace.get(pick())).value),
      plain: async () => whole(JSON.parse(await redis.get(pick()))),
    },
    IN_FLIGHT,
    { serverCpu },
  );
  results.speed('node/state/get', gets.ours, gets.plain);
  const sets = await row(
    { ours: () => namespace.set(pick(), value), plain: () => redis.set(pick(), JSON.stringify(value)) },
    IN_FLIGHT,
    { serverCpu },
  );
  results.speed('node/state/set', sets.ours, sets.plain);
}

const SLOW_MS = 5;
const ENTRIES = 100_000;
const TTL_S = 15;

/** What other commands have to wait for while a project's expired entries leave. */
export async function expiry(results, rig) {
  const { redis } = rig;
  const namespace = rig.project().state.namespace('bench');
  let last;
  for (let from = 0; from < ENTRIES; from += 1_000) {
    const group = Array.from({ length: 1_000 }, (_, i) => namespace.set(`k${from + i}`, from, { ttlSeconds: TTL_S }));
    last = (await Promise.all(group)).at(-1).expiresAt;
  }
  await pause(last - Date.now() + 100);
  await redis.configSet('slowlog-log-slower-than', String(SLOW_MS * 1_000));
  await redis.sendCommand(['SLOWLOG', 'RESET']);
  await redis.configResetStat();
  const there = await redis.dbSize();
  const began = performance.now();
  // A write sees that something is due.
  await namespace.set('live', 1);
  while ((await redis.dbSize()) > 3) await pause(50);
  const seconds = (performance.now() - began) / 1_000;
  const slow = await redis.sendCommand(['SLOWLOG', 'LEN']);
  const [, calls, us] = /cmdstat_evalsha:calls=(\d+),usec=\d+,usec_per_call=([\d.]+)/.exec(await redis.info('commandstats'));
  await redis.configSet('slowlog-log-slower-than', '10000');
  const remarks = `${there.toLocaleString('en')} keys in ${seconds.toFixed(1)} s, ${calls} script calls of ${us} µs on average`;
  results.figures('node/expiry', [slow], undefined, { remarks });
}
