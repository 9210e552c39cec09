import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { median, pause, quantile, ROUNDS } from '../harness.mjs';
import { fill, fillPlain, mget, scan } from '../rig.mjs';

const RECORDS = 100_000;
const PINGING_MS = 4_000;

export async function scans(results, rig) {
  const { redis } = rig;
  const store = rig.locations('scan');
  await fill(store, RECORDS);
  await fillPlain(redis, RECORDS);
  const perSecond = { ours: [], plain: [] };
  await scan(store, RECORDS);
  await mget(redis, RECORDS);
  for (let round = 0; round < ROUNDS; round++) {
    perSecond.ours.push(RECORDS / (await scan(store, RECORDS)));
    perSecond.plain.push(RECORDS / (await mget(redis, RECORDS)));
  }
  results.figures('node/scan', perSecond.ours, perSecond.plain);
  results.figures('node/scan/seconds', perSecond.ours.map((speed) => RECORDS / speed));

  const pings = pinger(rig.url);
  const waits = { idle: [], scans: [], mgets: [] };
  for (let round = 0; round < ROUNDS; round++) {
    waits.idle.push(await pings.during(() => pause(PINGING_MS)));
    waits.scans.push(await pings.during(() => until(PINGING_MS, () => scan(store, RECORDS))));
    waits.mgets.push(await pings.during(() => until(PINGING_MS, () => mget(redis, RECORDS))));
  }
  pings.stop();
  const p999 = (rounds) => rounds.map((all) => quantile(all, 0.999));
  const worst = (rounds) => `${Math.max(...rounds.flat()).toFixed(1)} ms`;
  results.figures('node/scan/ping', p999(waits.scans), p999(waits.idle), {
    remarks: `worst ${worst(waits.scans)}, idle ${worst(waits.idle)}, beside MGETs p99.9 ${median(p999(waits.mgets)).toFixed(2)} ms and worst ${worst(waits.mgets)}`,
  });
}

async function until(ms, work) {
  const end = performance.now() + ms;
  while (performance.now() < end) await work();
}

/** Another client, in a process of its own, so that this one's event loop is not what is measured. */
function pinger(url) {
  const child = spawn(process.execPath, [fileURLToPath(new URL('../pings.mjs', import.meta.url)), url], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return {
    /** What each PING took while `work` went on, in milliseconds. */
    async during(work) {
      child.stdin.write('begin\n');
      await work();
      child.stdin.write('end\n');
      return JSON.parse((await lines.next()).value);
    },
    stop: () => child.stdin.end(),
  };
}
