// Both sides in turn (A B A B) in one run; the figures of the rounds, and what an operation costs both processors.
import { performance } from 'node:perf_hooks';
import { costs, figure, GOALS, goalText, median, verdict, writeResult } from '../goals.mjs';

export { median, quantile } from '../goals.mjs';

export const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
export const ROUND_MS = Number(process.env.BENCH_ROUND_MS ?? 1_500);

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

/** Microseconds of CPU that this process used so far. */
const clientCpu = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

/**
 * Runs the sides of one row in turn, after a warm-up. `sides` maps a name to `(lane, i) => Promise`. Per side: operations per
 * second by round, and the CPU microseconds per operation by round, the client's and, if `serverCpu` tells the seconds used so far,
 * the server's. What `tidy` does after each round is not measured.
 */
export async function row(sides, inFlight, { serverCpu, most, tidy } = {}) {
  const all = Object.entries(sides);
  const results = Object.fromEntries(all.map(([name]) => [name, { perSecond: [], serverUs: [], clientUs: [] }]));
  for (const [, operation] of all) await throughput(operation, inFlight, { roundMs: ROUND_MS / 3, most });
  await tidy?.();
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, operation] of all) {
      const server = (await serverCpu?.()) ?? 0;
      const client = clientCpu();
      const began = performance.now();
      const perSecond = await throughput(operation, inFlight, { most });
      const operations = (perSecond * (performance.now() - began)) / 1_000;
      results[name].perSecond.push(perSecond);
      results[name].clientUs.push((clientCpu() - client) / operations);
      if (serverCpu) results[name].serverUs.push((((await serverCpu()) - server) * 1e6) / operations);
      await tidy?.();
    }
  }
  return results;
}

const cpu = ({ serverUs, clientUs }) => ({ server: serverUs.length > 0 ? median(serverUs) : undefined, client: median(clientUs) });

/** Collects what was measured, as `target/bench/node.json` has it. */
export class Results {
  #result = { part: 'node', about: [], rows: {}, plots: {}, failed: [] };

  about(...lines) {
    this.#result.about.push(...lines);
    console.log(lines.join('\n'));
  }

  /** Two sides of a `row`, by their operations per second. */
  speed(id, ours, rival, { scale = 1, ...more } = {}) {
    const scaled = (side) => side.perSecond.map((perSecond) => perSecond * scale);
    this.figures(id, scaled(ours), scaled(rival), { cpu: { ours: cpu(ours), rival: cpu(rival) }, ...more });
  }

  /** Figures of the rounds in the unit of the goal; `rival` is left out where the goal has none. */
  figures(id, ours, rival, { against, remarks, cpu } = {}) {
    const goal = GOALS.get(id);
    if (!goal) throw new Error(`tests/bench/goals.json has no row ${id}`);
    const result = { ours, rival, against, remarks, cpu };
    this.#result.rows[id] = result;
    const { value, spread, word } = verdict(goal, result);
    const theirs = rival && `against ${figure(rival, goal.unit)} (${against ?? goal.rival})`;
    const judged = [value, spread && `(${spread})`, goalText(goal) && `goal ${goalText(goal)}:`, word].filter(Boolean).join(' ');
    console.log(`   ${[`${goal.measured}: ${figure(ours, goal.unit)}`, theirs, judged, costs(result), remarks].filter(Boolean).join(' · ')}`);
  }

  plot(name, data) {
    this.#result.plots[name] = data;
  }

  failed(row, error) {
    this.#result.failed.push(`${row}: ${error.message}`);
    console.error(`   ${row} failed:`, error);
  }

  write() {
    writeResult('node.json', this.#result);
  }
}
