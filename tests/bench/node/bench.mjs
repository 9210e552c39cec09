// Node.js on Redis and embedded, against what people would write by hand, in one run. `node bench.mjs [row …]`: the rows wanted,
// all if none is named; `../report.mjs` makes the table. BENCH_ROUNDS and BENCH_ROUND_MS make it shorter or longer.
import { blobs, beside } from './rows/blobs.mjs';
import { embeddedFile, embeddedMemory } from './rows/embedded.mjs';
import { embeddedGrowth, growth } from './rows/growth.mjs';
import { memory } from './rows/memory.mjs';
import { expiry, locks, state } from './rows/projects.mjs';
import { reads } from './rows/reads.mjs';
import { scans } from './rows/scans.mjs';
import { cas, commits, puts } from './rows/writes.mjs';
import { Results } from './harness.mjs';
import { startRig } from './rig.mjs';

const ON_REDIS = { read: reads, put: puts, cas, commit: commits, blob: blobs, beside, scan: scans, memory, growth, lock: locks, state, expiry };
const EMBEDDED = { 'embedded-memory': embeddedMemory, 'embedded-file': embeddedFile, 'embedded-growth': embeddedGrowth };

const all = Object.keys({ ...ON_REDIS, ...EMBEDDED });
const wanted = process.argv.slice(2);
const unknown = wanted.filter((row) => !all.includes(row));
if (unknown.length > 0) {
  console.error(`no such row: ${unknown.join(', ')}; there are: ${all.join(', ')}`);
  process.exit(2);
}
const chosen = (rows) => Object.entries(rows).filter(([row]) => wanted.length === 0 || wanted.includes(row));

const results = new Results();
const began = performance.now();
/** One row that fails leaves the others. */
async function measured(row, measure, rig) {
  try {
    await measure(results, rig);
  } catch (error) {
    process.exitCode = 1;
    results.failed(row, error);
  }
}

const redisRows = chosen(ON_REDIS);
if (redisRows.length > 0) {
  const rig = await startRig();
  results.about(...(await rig.about()));
  for (const [row, measure] of redisRows) {
    await measured(row, measure, rig);
    await rig.clear();
  }
  await rig.stop();
}
for (const [row, measure] of chosen(EMBEDDED)) await measured(row, measure);
results.write();
console.log(`\n${Math.round((performance.now() - began) / 1_000)} s`);
