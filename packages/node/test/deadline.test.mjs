// The operation timeout bounds all that an operation consists of: here the script that the server has forgotten, and that is
// sent again over a slow line (F01).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ZLinkRedisLocationStore, ZLinkRedisRelocationStore } from '@zlink-systems/framework-locations-redis';
import { Project } from '@zlink-systems/project-state';
import { createClient } from 'redis6';
import { startServer } from './support/servers.mjs';

const TIMEOUT_MS = 3_000;
/** One reply comes within the time, and two do not. */
const DELAY_MS = 2_500;

test('a script that is sent again over a slow line gets no time of its own', async (t) => {
  const server = await startServer('single', '--proxy');
  const client = createClient({ url: server.url });
  t.after(async () => {
    client.destroy();
    await server.stop();
  });
  await client.connect();
  const settings = { url: server.proxyUrl, operationTimeoutMs: TIMEOUT_MS };
  const records = new ZLinkRedisLocationStore({ ...settings, keyPrefix: 'p' });
  const blobs = new ZLinkRedisRelocationStore({ ...settings, keyPrefix: 'b' });
  const project = new Project({ ...settings, workspace: 'w', project: 'p' });
  const [entries, locks] = [project.state.namespace('n'), project.locks()];
  const key = (value) => ({ value });
  const put = (value) => ({ conditions: [], mutations: [{ kind: 'put', key: key(value), bytes: new Uint8Array(9) }] });
  const operations = {
    write: () => records.write(put('k')),
    scan: () => records.scan({ prefix: '', limit: 1 }),
    'blob put': () => blobs.put(key('other'), new Uint8Array(9), 60_000),
    'blob renew': () => blobs.renew(key('r'), 60_000),
    'blob delete': () => blobs.delete(key('r')),
    'state set': () => entries.set('e', 1),
    'state delete': () => entries.delete('e'),
    acquire: () => locks.acquire('free', { waitMs: 10_000 }),
  };
  await Promise.all([records.write(put('k')), records.write(put('l')), blobs.put(key('r'), new Uint8Array(9), 60_000)]);
  await Promise.all(Object.values(operations).map((operation) => operation()));
  await blobs.put(key('r'), new Uint8Array(9), 60_000);
  await client.sendCommand(['SCRIPT', 'FLUSH']);
  await server.say(`proxy delay replies ${DELAY_MS}`);
  const began = performance.now();
  await Promise.all(
    Object.entries(operations).map(async ([name, operation]) => {
      await assert.rejects(operation(), { code: 'ZLINK_STORE_TIMEOUT' }, name);
      const took = performance.now() - began;
      // Well before a second reply would have come.
      assert.ok(took > TIMEOUT_MS - 50 && took < 2 * DELAY_MS - 100, `${name} ended after ${took} ms`);
    }),
  );
  await server.say('proxy delay replies 0');
  await Promise.all([records, blobs, project].map((store) => store.dispose()));
});
