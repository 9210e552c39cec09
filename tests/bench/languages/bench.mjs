// The languages beside each other, in one run on one Redis and on the embedded engine in memory: calls per second with 1, 64 and
// 1,024 in flight, and MB/s of blobs of 64 MiB. They take turns, row by row and round by round; the table has medians, and the ratio
// to Node.js. `BENCH_ROUNDS` and `BENCH_SECONDS` (of one measurement) make it longer or shorter; arguments name the languages.
//
// A language is a program that gets the address of the Redis and a text of its own as arguments. For each line `what engine inFlight
// seconds` of its input it measures once and writes how many calls ended per second; it ends when its input ends.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { startRedis } from '../../node/runner/places.mjs';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 1);
const BLOB = 64 * 1024 * 1024;
/** Large values may take so many times as long as in Node.js. */
const MOST_TIMES = 3;

const root = fileURLToPath(new URL('../../..', import.meta.url));
const classPath = (name) => readFileSync(`${root}/target/${name}.classpath`, 'utf8').trim();

// `make` has put there what the JVM needs.
const LANGUAGES = {
  node: () => [process.execPath, 'tests/bench/languages/node.mjs'],
  java: () => ['java', '-Xmx1g', '-cp', classPath('bench-languages-java'), 'tests/bench/languages/Calls.java'],
  python: () => ['target/python/venv/bin/python', 'tests/bench/languages/calls.py'],
  kotlin: () => ['java', '-Xmx1g', '-cp', classPath('kotlin'), 'bench.CallsKt'],
};

const ROWS = [
  ...['redis', 'memory'].flatMap((engine) =>
    ['read', 'put'].flatMap((what) => [1, 64, 1_024].map((inFlight) => ({ engine, what, inFlight }))),
  ),
  ...['redis', 'memory'].flatMap((engine) =>
    ['blob-put', 'blob-read'].map((what) => ({ engine, what, inFlight: 1, size: BLOB })),
  ),
];

class Language {
  constructor(name, url) {
    const [program, ...options] = LANGUAGES[name]();
    this.name = name;
    this.process = spawn(program, [...options, url, name], { cwd: root, stdio: ['pipe', 'pipe', 'inherit'] });
    this.lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
  }

  async measure({ engine, what, inFlight }, seconds) {
    this.process.stdin.write(`${what} ${engine} ${inFlight} ${seconds}\n`);
    const { value, done } = await this.lines.next();
    if (done) throw new Error(`${this.name} has ended`);
    return Number(value);
  }
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];
const shown = (figure) => (figure >= 100 ? Math.round(figure).toLocaleString('en') : figure.toFixed(1));

const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(LANGUAGES);
const redis = await startRedis();
const languages = wanted.map((name) => new Language(name, redis.url));
try {
  console.log(`${cpus().length} × ${cpus()[0].model}, load ${loadavg()[0].toFixed(1)}, ${ROUNDS} rounds of ${SECONDS} s\n`);
  console.log(`| engine, work | ${wanted.join(' | ')} |`);
  console.log(`|---|${wanted.map(() => '---:|').join('')}`);
  const slow = [];
  for (const row of ROWS) {
    const figures = languages.map(() => []);
    for (const language of languages) await language.measure(row, SECONDS / 2);
    for (let round = 0; round < ROUNDS; round++) {
      for (const [at, language] of languages.entries()) figures[at].push(await language.measure(row, SECONDS));
    }
    const unit = row.size === undefined ? 1 : row.size / 1e6;
    const all = figures.map((rounds) => median(rounds) * unit);
    const ratios = all.map((figure) => figure / all[0]);
    const work = row.size === undefined ? `${row.what}, ${row.inFlight} in flight, calls/s` : `${row.what}, 64 MiB, MB/s`;
    const cells = all.map((figure, at) => `${shown(figure)}${at > 0 ? ` (${ratios[at].toFixed(2)}×)` : ''}`);
    console.log(`| ${row.engine}, ${work} | ${cells.join(' | ')} |`);
    if (row.size !== undefined) {
      slow.push(...wanted.filter((_, at) => ratios[at] < 1 / MOST_TIMES).map((name) => `${name}, ${row.engine} ${work}`));
    }
  }
  console.log(`\nLarge values within ${MOST_TIMES}× of ${wanted[0]}: ${slow.length === 0 ? 'met' : `MISSED (${slow.join('; ')})`}`);
} finally {
  for (const { process: one } of languages) one.stdin.end();
  await redis.stop();
}
