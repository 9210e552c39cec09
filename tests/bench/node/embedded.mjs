// The embedded engine against embedded stores that Node people use.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { openKv } from '@deno/kv';
import { open as openLmdb } from 'lmdb';
import { ZLinkEmbeddedLocationStore } from '@zlink-systems/framework-locations-embedded';
import { row } from './harness.mjs';

const value = Buffer.alloc(256, 'v');
const key = (lane, i) => `actor/${lane}/${i % 1_000}`;

export async function embedded(table) {
  const memory = new ZLinkEmbeddedLocationStore({});
  const deno = await openKv(':memory:');
  for (const lane of Array.from({ length: 64 }, (_, i) => i)) {
    for (let i = 0; i < 16; i++) {
      await memory.write({ conditions: [], mutations: [{ kind: 'put', key: { value: `r/${lane}/${i}` }, bytes: value }] });
      await deno.set(['r', lane, i], value);
    }
  }
  for (const inFlight of [1, 64]) {
    const goal = inFlight === 1 ? '≥ 2×' : '≥ 3×';
    const read = await row({
      ours: (lane, i) => memory.read({ value: `r/${lane}/${i % 16}` }),
      deno: (lane, i) => deno.get(['r', lane, i % 16]),
    }, inFlight);
    table.add(`embedded memory read, ${inFlight} in flight`, read.ours.perSecond, read.deno.perSecond, 'ops/s', '@deno/kv in memory', goal);
    const ours = [];
    const theirs = [];
    const cas = await row({
      ours: async (lane) => {
        const k = { value: `cas/${lane}` };
        const condition = ours[lane] ? { kind: 'version', key: k, expected: ours[lane] } : { kind: 'missing', key: k };
        ours[lane] = (await memory.write({ conditions: [condition], mutations: [{ kind: 'put', key: k, bytes: value }] })).putVersions[0].version;
      },
      deno: async (lane) => {
        const result = await deno.atomic().check({ key: ['cas', lane], versionstamp: theirs[lane] ?? null }).set(['cas', lane], value).commit();
        theirs[lane] = result.versionstamp;
      },
    }, inFlight);
    table.add(`embedded memory CAS, ${inFlight} in flight`, cas.ours.perSecond, cas.deno.perSecond, 'ops/s', '@deno/kv in memory', goal);
  }
  await memory.dispose();
  deno.close();

  const folder = mkdtempSync(join(tmpdir(), 'zlink-bench-'));
  try {
    const file = new ZLinkEmbeddedLocationStore({ path: join(folder, 'ours'), operationTimeoutMs: 30_000 });
    const denoFile = await openKv(join(folder, 'deno.db'));
    const sqlite = new Database(join(folder, 'sqlite.db'));
    sqlite.pragma('journal_mode = WAL');
    sqlite.pragma('synchronous = FULL');
    sqlite.exec('CREATE TABLE kv (k TEXT PRIMARY KEY, v BLOB) WITHOUT ROWID');
    const upsert = sqlite.prepare('INSERT INTO kv VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v');
    const lmdb = openLmdb({ path: join(folder, 'lmdb'), encoding: 'binary' });
    for (const inFlight of [1, 64]) {
      const result = await row({
        ours: (lane, i) => file.write({ conditions: [], mutations: [{ kind: 'put', key: { value: key(lane, i) }, bytes: value }] }),
        '@deno/kv': (lane, i) => denoFile.set(['actor', lane, i % 1_000], value),
        'better-sqlite3': async (lane, i) => upsert.run(key(lane, i), value),
        lmdb: async (lane, i) => { await lmdb.put(key(lane, i), value); await lmdb.flushed; },
      }, inFlight);
      const { ours, ...rivals } = result;
      const best = Object.entries(rivals).sort(([, a], [, b]) => b.perSecond - a.perSecond)[0];
      const all = Object.entries(rivals).map(([rival, { perSecond }]) => `${rival} ${Math.round(perSecond)}`).join(', ');
      table.add(`embedded file durable put, ${inFlight} in flight`, ours.perSecond, best[1].perSecond, 'ops/s', `best: ${best[0]}`, inFlight === 1 ? '≥ 1×' : '≥ 3×', all);
    }
    await file.dispose();
    denoFile.close();
    sqlite.close();
    await lmdb.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
