import { median, row } from '../harness.mjs';
import { fill, fillPlain, name } from '../rig.mjs';

const KEYS = 10_000;
/** Those with a goal, and some between for the plot. */
const IN_FLIGHT = [1, 4, 16, 64, 256, 1_024];
const pick = () => name(Math.floor(Math.random() * KEYS));

export async function reads(results, rig) {
  const { redis, glide, serverCpu } = rig;
  const store = rig.locations('bench');
  await fill(store, KEYS);
  await fillPlain(redis, KEYS);
  const series = { 'ZLink Stores': [], 'node-redis GET': [], 'valkey-glide GET': [] };
  for (const inFlight of IN_FLIGHT) {
    const { ours, plain, glided } = await row(
      { ours: () => store.read({ value: pick() }), plain: () => redis.get(pick()), glided: () => glide.get(pick()) },
      inFlight,
      { serverCpu },
    );
    [ours, plain, glided].forEach((side, which) => Object.values(series)[which].push(median(side.perSecond)));
    if ([1, 64, 1_024].includes(inFlight)) results.speed(`node/read/${inFlight}/node-redis`, ours, plain);
    if ([64, 1_024].includes(inFlight)) {
      results.speed(`node/read/${inFlight}/valkey-glide`, ours, glided);
      results.figures(`node/server-cpu/read/${inFlight}`, ours.serverUs, plain.serverUs);
    }
  }
  results.plot('throughput', { title: 'Reads of 256 B from Node.js on one Redis', inFlight: IN_FLIGHT, series });
}
