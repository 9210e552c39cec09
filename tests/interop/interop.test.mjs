// What one language wrote, another reads (README.md): `engine/first+second/group/name`.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { startRedis } from '../node/runner/places.mjs';
import { run } from '../node/runner/run.mjs';
import { Participant, PARTICIPANTS } from './participants.mjs';
import { SharedPlace } from './stores.mjs';

// Scenarios wait more than they work.
const AT_ONCE = 4;

const conformance = fileURLToPath(new URL('../conformance', import.meta.url));
const own = fileURLToPath(new URL('scenarios.json', import.meta.url));

function read(file) {
  const { group, scenarios } = JSON.parse(readFileSync(file, 'utf8'));
  return scenarios.map(({ name, steps }) => ({ name: `${group}/${name}`, steps }));
}

const shared = read(own);
// What a language does with wrong arguments is its own; some of it has no form on the wire. And what waits for time to pass is about
// the engine's clock, with little time for two processes to connect.
const isShared = ({ steps }) => !JSON.stringify(steps).includes('"until"');
const all = readdirSync(conformance)
  .filter((file) => file.endsWith('.json') && !file.endsWith('.schema.json') && file !== 'arguments.json')
  .sort()
  .flatMap((file) => read(join(conformance, file)))
  .filter(isShared);

const names = Object.keys(PARTICIPANTS);
const pairs = names.flatMap((first) => names.filter((name) => name !== first).map((second) => [first, second]));

let redis;
const participants = new Map();
before(async () => {
  redis = await startRedis();
  for (const name of names) participants.set(name, new Participant(name));
});
after(async () => {
  const ends = await Promise.all([...participants.values()].map((participant) => participant.end()));
  await redis?.stop();
  assert.deepEqual(ends, ends.map(() => 0));
});

let places = 0;

const ENGINES = {
  redis: {
    capabilities: ['survives-reopen', 'needs-key-prefix'],
    scenarios: [...shared, ...all],
    at: () => ({ engine: 'redis', address: redis.url, inFront: `interop-${places++}.` }),
    end() {},
  },
  file: {
    capabilities: ['survives-reopen', 'one-after-the-other'],
    scenarios: shared,
    at: () => ({ engine: 'file', address: mkdtempSync(join(tmpdir(), 'zlink-interop-')), exclusive: true }),
    end: ({ address }) => rmSync(address, { recursive: true, force: true }),
  },
};

for (const [engine, { capabilities, scenarios, at, end }] of Object.entries(ENGINES)) {
  for (const pair of pairs) {
    const name = `${engine}/${pair.join('+')}`;
    describe(name, { concurrency: AT_ONCE }, () => {
      for (const scenario of scenarios) {
        it(`${name}/${scenario.name}`, async () => {
          const where = at();
          const place = new SharedPlace(where, pair.map((one) => participants.get(one)));
          try {
            await run(scenario, place, [...capabilities, 'utf16-strings', 'signed-numbers']);
          } finally {
            end(where);
          }
        });
      }
    });
  }
}
