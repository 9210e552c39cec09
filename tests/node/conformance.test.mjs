// Every scenario of tests/conformance against every engine, through the Node.js packages: `engine/group/name`.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { scenariosOf } from '../conformance/stores.mjs';
import { ENGINES, LANGUAGE, startRedis } from './runner/places.mjs';
import { run } from './runner/run.mjs';

// Scenarios wait more than they work.
const AT_ONCE = 8;

const folder = fileURLToPath(new URL('../conformance', import.meta.url));
const lists = fileURLToPath(new URL('../../target/conformance', import.meta.url));
const scenarios = readdirSync(folder)
  .filter((file) => file.endsWith('.json') && !file.endsWith('.schema.json'))
  .sort()
  .map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')))
  .flatMap(({ group, scenarios }) => scenarios.map(({ name, steps }) => ({ name: `${group}/${name}`, steps })));

// Engines on the same servers share them.
const started = new Map();
before(async () => {
  for (const { servers } of Object.values(ENGINES)) {
    if (servers && !started.has(servers.join())) started.set(servers.join(), await startRedis(servers));
  }
});
after(() => Promise.all([...started.values()].map((servers) => servers.stop())));

for (const [engine, { capabilities, servers, place }] of Object.entries(ENGINES)) {
  const executed = new Set();
  const meant = scenariosOf(`node-${engine}`, scenarios);
  describe(engine, { concurrency: AT_ONCE }, () => {
    for (const scenario of meant) {
      it(`${engine}/${scenario.name}`, async () => {
        executed.add(scenario.name);
        const here = place(started.get(servers?.join()));
        try {
          await run(scenario, here, [...capabilities, ...LANGUAGE]);
        } finally {
          here.end();
        }
      });
    }
    after(() => {
      if (executed.size !== meant.length) return;
      mkdirSync(lists, { recursive: true });
      writeFileSync(join(lists, `node-${engine}.txt`), `${[...executed].sort().join('\n')}\n`);
    });
  });
}
