// Fails unless every runner's list of executed scenarios equals the list in the data files: all, but those that use a kind of store
// that the run can't have (`WITHOUT` in stores.mjs).
//   node tests/conformance/compare.mjs [folder of the lists] [list that must be there]...
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { scenariosOf } from './stores.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const folder = process.argv[2] ?? join(here, '../../target/conformance');
const required = process.argv.slice(3);

const scenarios = readdirSync(here)
  .filter((file) => file.endsWith('.json') && !file.endsWith('.schema.json'))
  .map((file) => JSON.parse(readFileSync(join(here, file), 'utf8')))
  .flatMap(({ group, scenarios }) => scenarios.map(({ name, steps }) => ({ name: `${group}/${name}`, steps })));

const lists = readdirSync(folder)
  .filter((file) => file.endsWith('.txt'))
  .sort();
let failed = false;
const fail = (text) => {
  failed = true;
  console.error(text);
};

for (const list of required) {
  if (!lists.includes(`${list}.txt`)) fail(`${list}: no list in ${folder}`);
}
if (lists.length === 0) fail(`no lists in ${folder}`);
for (const list of lists) {
  const names = scenariosOf(list.replace(/\.txt$/, ''), scenarios)
    .map(({ name }) => name)
    .sort();
  const executed = readFileSync(join(folder, list), 'utf8').split('\n').filter(Boolean);
  const missing = names.filter((name) => !executed.includes(name));
  const unknown = executed.filter((name) => !names.includes(name));
  for (const name of missing) fail(`${list}: ${name} was not executed`);
  for (const name of unknown) fail(`${list}: ${name} is no scenario`);
  if (missing.length + unknown.length === 0) console.log(`${list}: ${executed.length} scenarios`);
}
process.exitCode = failed ? 1 : 0;
