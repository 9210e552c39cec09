// What one language wrote, another reads (README.md): `engine/first+second/group/name`.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { storesOf } from '../conformance/stores.mjs';
import { startRedis } from '../node/runner/places.mjs';
import { run } from '../node/runner/run.mjs';
import { PARTICIPANTS, Participant } from './participants.mjs';
import { SharedPlace } from './stores.mjs';

// Scenarios wait more than they work.
const AT_ONCE = 4;

const conformance = fileURLToPath(new URL('../conformance', import.meta.url));
const own = fileURLToPath(new URL('scenarios.json', import.meta.url));

function read(file) {
  const { group, scenarios } = JSON.parse(readFileSync(file, 'utf8'));
  return scenarios.map(({ name, steps }) => ({ name: `${group}/${name}`, steps }));
}

const shared = read(own).map((scenario) => ({ ...scenario, own: true }));
// What a language does with wrong arguments is its own, as is what it does around a callback; some of it has no form on the wire. And what
// waits for time to pass is about the engine's clock, with little time for two processes to connect.
const OWN = ['arguments.json', 'project-names.json', 'urls.json', 'with-lock.json', 'wrong-input.json'];
const isShared = ({ steps }) => !/"(until|withLock)"/.test(JSON.stringify(steps));
const all = readdirSync(conformance)
  .filter((file) => file.endsWith('.json') && !file.endsWith('.schema.json') && !OWN.includes(file))
  .sort()
  .flatMap((file) => read(join(conformance, file)))
  .filter(isShared);

const names = Object.keys(PARTICIPANTS);
const pairs = names.flatMap((first) => names.map((second) => [first, second]));

/** Whether one follows the other in the list of languages, which ends where it begins. */
const areNeighbours = ([first, second]) =>
  [1, names.length - 1].includes(Math.abs(names.indexOf(first) - names.indexOf(second)));

/** All scenarios for neighbours, the own ones for every pair. Two processes of one language have only locks to say to each other. */
function meant(scenarios, pair) {
  return scenarios.filter(({ steps, own }) => {
    if (pair[0] === pair[1]) return own && storesOf(steps).has('project');
    return own || areNeighbours(pair);
  });
}

let redis;
const participants = new Map();
before(async () => {
  redis = await startRedis();
});
after(async () => {
  const ends = await Promise.all([...participants.values()].map((participant) => participant.end()));
  await redis?.stop();
  assert.deepEqual(
    ends,
    ends.map(() => 0),
  );
});

/** The participants of a pair, each started once; with itself, a language has two. */
function both(pair) {
  return pair.map((name, at) => {
    const called = pair.indexOf(name) === at ? name : `another ${name}`;
    if (!participants.has(called)) participants.set(called, new Participant(name));
    return participants.get(called);
  });
}

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
      for (const scenario of meant(scenarios, pair)) {
        it(`${name}/${scenario.name}`, async () => {
          const where = at();
          const place = new SharedPlace(where, both(pair));
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
