// Both sides in turn (A B A B) in one run; medians of the rounds; ratios with their spread; goals.
import { performance } from 'node:perf_hooks';

export const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
export const ROUND_MS = Number(process.env.BENCH_ROUND_MS ?? 1_500);

export const median = (numbers) => quantile(numbers, 0.5);
export const quantile = (numbers, q) => [...numbers].sort((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * q))];
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * `inFlight` loops of `operation` for one round, or until `most` are done; operations per second, and the milliseconds of each
 * if `waits` is given.
 */
export async function throughput(operation, inFlight, { roundMs = ROUND_MS, most = Infinity, waits } = {}) {
  let done = 0;
  const began = performance.now();
  const until = began + roundMs;
  const loop = async (lane) => {
    for (let i = 0; ; i++) {
      const before = performance.now();
      if (before >= until || done >= most) return;
      await operation(lane, i);
      waits?.push(performance.now() - before);
      done++;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, lane) => loop(lane)));
  return done / ((performance.now() - began) / 1_000);
}

/**
 * Runs the sides of one row in turn, after a warm-up. `sides` maps a name to `(lane, i) => Promise`. Per side: operations per
 * second by round, and the server's CPU microseconds per operation by round, if `serverCpu` tells the seconds used so far. What
 * `tidy` does after each round is not measured.
 */
export async function row(sides, inFlight, { serverCpu, most, tidy } = {}) {
  const all = Object.entries(sides);
  const results = Object.fromEntries(all.map(([name]) => [name, { perSecond: [], cpuUs: [] }]));
  for (const [, operation] of all) await throughput(operation, inFlight, { roundMs: ROUND_MS / 3, most });
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, operation] of all) {
      const before = (await serverCpu?.()) ?? 0;
      const began = performance.now();
      const perSecond = await throughput(operation, inFlight, { most });
      const operations = (perSecond * (performance.now() - began)) / 1_000;
      results[name].perSecond.push(perSecond);
      if (serverCpu) results[name].cpuUs.push((((await serverCpu()) - before) * 1e6) / operations);
      await tidy?.();
    }
  }
  return results;
}

export const atLeast = (times) => ({ text: `≥ ${times}×`, met: (ratio) => ratio >= times });
export const atMost = (times) => ({ text: `≤ ${times}×`, met: (ratio) => ratio <= times });

const number = (value) => (value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2));
const times = (value) => `${value.toFixed(2)}×`;

/** Collects what was measured and prints it as a Markdown table. */
export class Table {
  #rows = [];

  /** Figures of the rounds, ours and the rival's, each round's pair measured one after the other. */
  ratio(work, ours, rival, { unit, against, goal, scale = 1, remarks = '' }) {
    const ratio = median(ours) / median(rival);
    const rounds = ours.map((figure, round) => figure / rival[round]);
    const spread = rounds.length > 1 ? ` (${Math.min(...rounds).toFixed(2)}–${Math.max(...rounds).toFixed(2)})` : '';
    this.#add([
      work,
      `${number(median(ours) * scale)} ${unit}`,
      `${number(median(rival) * scale)} ${unit} (${against})`,
      times(ratio) + spread,
      goal?.text ?? '',
      goal === undefined ? '' : goal.met(ratio) ? 'met' : 'MISSED',
      remarks,
    ]);
  }

  /** A figure that may be so large at most. */
  bound(work, figure, most, unit, goal, remarks = '') {
    this.#add([work, `${number(figure)} ${unit}`, '', '', goal, figure <= most ? 'met' : 'MISSED', remarks]);
  }

  #add(cells) {
    this.#rows.push(cells);
    const [work, ours, rival, ratio, goal, met, remarks] = cells;
    console.log(`   ${work}: ${[ours, rival && `against ${rival}`, ratio, goal && `goal ${goal}: ${met}`, remarks].filter(Boolean).join(' · ')}`);
  }

  print() {
    console.log('\n| work | ours | rival | ratio (rounds) | goal | | remarks |\n|---|---|---|---|---|---|---|');
    for (const cells of this.#rows) console.log(`| ${cells.join(' | ')} |`);
  }
}
