// 100,000 live entries of a project, exactly, on every engine, from several processes' worth of connections.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Project, RateLimitError, StateConflictError } from '@zlink-systems/project-state';
import { startServer } from './support/servers.mjs';

const FULL = 100_000;
const TOGETHER = 2_000;

const folder = mkdtempSync(join(tmpdir(), 'zlink-limit-'));
after(() => rmSync(folder, { recursive: true }));

const engines = {
  memory: async () => ({ url: 'memory:limit', stop: async () => {} }),
  file: async () => ({ url: `file:${folder}/data`, stop: async () => {} }),
  Redis: () => startServer('single'),
};

/** The promise's outcome, as one word. */
const outcome = (promise) =>
  promise.then(
    () => 'stored',
    (error) =>
      error instanceof RateLimitError
        ? 'refused'
        : error instanceof StateConflictError
          ? 'conflict'
          : Promise.reject(error),
  );

for (const [engine, start] of Object.entries(engines)) {
  test(`the last place of a project on ${engine} is one caller's`, async () => {
    const { url, stop } = await start();
    const open = () => new Project({ url, workspace: 'w', project: 'p', operationTimeoutMs: 60_000 });
    const project = open();
    const others = [open(), open()];
    const all = [project, ...others].map((one) => one.state.namespace('n'));
    const [entries] = all;
    for (let from = 0; from < FULL - 1; from += TOGETHER) {
      const count = Math.min(TOGETHER, FULL - 1 - from);
      await Promise.all(Array.from({ length: count }, (_, i) => entries.set(`k${from + i}`, 1)));
    }

    const race = async (name) => {
      const racers = Array.from({ length: 50 }, (_, i) => outcome(all[i % 3].set(`${name}${i}`, 1)));
      return (await Promise.all(racers)).filter((end) => end === 'stored').length;
    };
    assert.equal(await race('last'), 1);
    assert.equal(await outcome(entries.set('more', 1)), 'refused');
    assert.equal(await outcome(project.state.namespace('other').set('k0', 1)), 'refused', "it is the project's limit");
    assert.equal(await entries.get('more'), null);
    assert.equal(await outcome(entries.set('more', 1, { expectedVersion: 1 })), 'conflict', 'found before the limit');
    assert.equal((await entries.set('k7', 2)).version, 2);

    assert.equal(await entries.delete('k1'), true);
    assert.equal(await entries.delete('k1'), false);
    assert.equal(await race('deleted'), 1);
    assert.equal(await outcome(entries.set('more', 1)), 'refused');

    const { expiresAt } = await entries.set('k2', 1, { ttlSeconds: 1 });
    const deadline = Date.now() + 20_000;
    let created;
    while (created === undefined) {
      assert.ok(Date.now() < deadline, 'an expiry makes no room');
      created = await entries.set('more', 1).catch((error) => {
        assert.ok(error instanceof RateLimitError, error);
        return pause(5);
      });
    }
    assert.ok(created.createdAt >= expiresAt, `${created.createdAt} before ${expiresAt}`);
    assert.equal(await race('expired'), 0, 'and for no more than one');

    await Promise.all([project, ...others].map((one) => one.dispose()));
    await stop();
  });
}
