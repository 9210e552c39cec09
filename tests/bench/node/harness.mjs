// Both sides in turn (A B A B) in one run; medians of the rounds; ratios.
import { performance } from 'node:perf_hooks';

export const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
export const ROUND_MS = Number(process.env.BENCH_ROUND_MS ?? 1_500);

export const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
export const quantile = (numbers, q) => [...numbers].sort((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * q))];

/** Operations per second with `inFlight` loops of `operation` for one round. */
export async function throughput(operation, inFlight, roundMs = ROUND_MS) {
  let done = 0;
  const began = performance.now();
  const until = began + roundMs;
  const loop = async (lane) => {
    for (let i = 0; performance.now() < until; i++) {
      await operation(lane, i);
      done++;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, lane) => loop(lane)));
  return done / ((performance.now() - began) / 1_000);
}

/**
 * Runs the sides of one row in turn. `sides` maps a name to `(lane, i) => Promise`; the first is ours. Returns per side the
 * median of operations per second and the server's CPU microseconds per operation.
 */
export async function row(sides, inFlight, { serverCpu, roundMs = ROUND_MS } = {}) {
  const names = Object.keys(sides);
  const speeds = Object.fromEntries(names.map((name) => [name, []]));
  const cpus = Object.fromEntries(names.map((name) => [name, []]));
  for (const name of names) await throughput(sides[name], inFlight, roundMs / 3);
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of names) {
      const before = serverCpu ? await serverCpu() : 0;
      const began = performance.now();
      const speed = await throughput(sides[name], inFlight, roundMs);
      const took = (performance.now() - began) / 1_000;
      speeds[name].push(speed);
      if (serverCpu) cpus[name].push(((await serverCpu()) - before) * 1e6 / (speed * took));
    }
  }
  return Object.fromEntries(names.map((name) => [name, {
    perSecond: median(speeds[name]),
    spread: (Math.max(...speeds[name]) - Math.min(...speeds[name])) / median(speeds[name]),
    cpuUs: serverCpu ? median(cpus[name]) : undefined,
  }]));
}

const number = (value) => value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2);

/** Collects rows and prints them as a Markdown table. */
export class Table {
  #rows = [];

  add(work, ours, rival, unit, rivalName, goal, extra = '') {
    this.#rows.push([work, `${number(ours)} ${unit}`, `${number(rival)} ${unit} (${rivalName})`, `${(ours / rival).toFixed(2)}×`, goal, extra]);
    console.log(`   ${work}: ${number(ours)} against ${number(rival)} ${unit} (${rivalName}): ${(ours / rival).toFixed(2)}×, goal ${goal} ${extra}`);
  }

  note(work, value, goal) {
    this.#rows.push([work, value, '', '', goal, '']);
    console.log(`   ${work}: ${value}, goal ${goal}`);
  }

  print() {
    console.log('\n| work | ours | rival | ratio | goal | remarks |\n|---|---|---|---|---|---|');
    for (const cells of this.#rows) console.log(`| ${cells.join(' | ')} |`);
  }
}
