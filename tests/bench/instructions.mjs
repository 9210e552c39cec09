// Counts the instructions of core's hot paths with callgrind and holds them against `instructions.json`. Ends with 1 if one of them
// takes more than it may. `instructions.mjs PROGRAM [--update] [WORK …]`
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

/** Counts of a work before it is said that it takes too many. */
const TRIES = 3;
const FILE = new URL('./instructions.json', import.meta.url);
const limits = JSON.parse(readFileSync(FILE, 'utf8'));
const [program, ...rest] = process.argv.slice(2);
const update = rest.includes('--update');
const wanted = rest.filter((one) => one !== '--update');
const strangers = wanted.filter((one) => !limits.works.some(({ work }) => work === one));
if (strangers.length > 0) {
  console.error(`no such work: ${strangers.join(', ')}; there are: ${limits.works.map(({ work }) => work).join(', ')}`);
  process.exit(2);
}

/** Instructions of the whole program. */
function counted(work, times) {
  // Without fair turns a thread that has just asked may go on until its time is over, and what goes together hangs on that.
  const options = ['--tool=callgrind', '--callgrind-out-file=/dev/null', '--fair-sched=yes'];
  const { status, error, stderr } = spawnSync('valgrind', [...options, program, work, String(times)], { encoding: 'utf8' });
  const found = /Collected\s*:\s*(\d+)/.exec(stderr ?? '');
  if (error || status !== 0 || !found) throw error ?? new Error(`${work} ended with ${status}:\n${stderr}`);
  return Number(found[1]);
}

const spaced = (value) => JSON.stringify(value).replaceAll('":', '": ').replaceAll(',"', ', "');
const shown = (count) => Math.round(count).toLocaleString('en');
console.log(`| work | instructions | noted | ratio | goal | |\n|---|---:|---:|---:|---|---|`);
for (const limit of limits.works) {
  const { work, few, many, instructions } = limit;
  if (wanted.length > 0 && !wanted.includes(work)) continue;
  const slack = limits.slack[work.split('/')[0]];
  // What comes in between only adds: the least of a few counts is what the work takes.
  let each = Infinity;
  for (let times = 0; times < TRIES && each > instructions * slack; times++) {
    each = Math.min(each, (counted(work, many) - counted(work, few)) / (many - few));
  }
  const ratio = each / instructions;
  const met = ratio <= slack;
  if (update) limit.instructions = Math.round(each);
  else if (!met) process.exitCode = 1;
  console.log(`| ${work} | ${shown(each)} | ${shown(instructions)} | ${update ? 'noted' : `${ratio.toFixed(3)}×`} | ≤ ${slack}× | ${update ? '' : met ? 'met' : 'MISSED'} |`);
}
if (update) {
  const works = limits.works.map((limit) => `    ${spaced(limit)}`).join(',\n');
  writeFileSync(FILE, `{\n  "about": ${JSON.stringify(limits.about)},\n  "slack": ${spaced(limits.slack)},\n  "works": [\n${works}\n  ]\n}\n`);
}
