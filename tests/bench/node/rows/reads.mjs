import { atLeast, atMost, row } from '../harness.mjs';
import { fill, fillPlain, name } from '../rig.mjs';

const KEYS = 10_000;
const pick = () => name(Math.floor(Math.random() * KEYS));

export async function reads(table, rig) {
  const { redis, glide, serverCpu } = rig;
  const store = rig.locations('bench');
  await fill(store, KEYS);
  await fillPlain(redis, KEYS);
  for (const [inFlight, goal, goalGlide] of [
    [1, atLeast(0.9)],
    [64, atLeast(3), atLeast(2)],
    [1_024, atLeast(4), atLeast(2)],
  ]) {
    const { ours, plain, glided } = await row(
      { ours: () => store.read({ value: pick() }), plain: () => redis.get(pick()), glided: () => glide.get(pick()) },
      inFlight,
      { serverCpu },
    );
    const work = `read 256 B, ${inFlight} in flight`;
    table.ratio(work, ours.perSecond, plain.perSecond, { unit: 'ops/s', against: 'node-redis GET', goal });
    table.ratio(work, ours.perSecond, glided.perSecond, { unit: 'ops/s', against: 'valkey-glide GET', goal: goalGlide });
    if (inFlight > 1) {
      table.ratio(`server CPU per read, ${inFlight} in flight`, ours.cpuUs, plain.cpuUs, { unit: 'µs', against: 'node-redis GET', goal: atMost(1.3) });
    }
  }
}
