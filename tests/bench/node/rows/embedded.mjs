// The embedded engine against embedded stores that Node.js people use.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openKv } from '@deno/kv';
import { ZLinkEmbeddedLocationStore } from '@zlink-systems/framework-locations-embedded';
import Database from 'better-sqlite3';
import { open as openLmdb } from 'lmdb';
import { median, row } from '../harness.mjs';
import { put, VALUE } from '../rig.mjs';

const LANES = 64;
const KEYS = 16;

export async function embeddedMemory(results) {
  const store = new ZLinkEmbeddedLocationStore();
  const deno = await openKv(':memory:');
  for (let lane = 0; lane < LANES; lane++) {
    for (let i = 0; i < KEYS; i++) {
      await store.write({ conditions: [], mutations: [put(`read/${lane}/${i}`, VALUE)] });
      await deno.set(['read', lane, i], VALUE);
    }
  }
  const versions = { ours: [], theirs: [] };
  for (const inFlight of [1, LANES]) {
    const read = await row(
      {
        ours: (lane, i) => store.read({ value: `read/${lane}/${i % KEYS}` }),
        theirs: (lane, i) => deno.get(['read', lane, i % KEYS]),
      },
      inFlight,
    );
    results.speed(`node/embedded-memory/read/${inFlight}`, read.ours, read.theirs);
    const cas = await row(
      {
        ours: async (lane) => {
          const key = { value: `cas/${lane}` };
          const expected = versions.ours[lane];
          const condition = expected ? { kind: 'version', key, expected } : { kind: 'missing', key };
          const result = await store.write({ conditions: [condition], mutations: [put(key.value, VALUE)] });
          versions.ours[lane] = result.putVersions[0].version;
        },
        theirs: async (lane) => {
          const key = ['cas', lane];
          const result = await deno.atomic().check({ key, versionstamp: versions.theirs[lane] ?? null }).set(key, VALUE).commit();
          versions.theirs[lane] = result.versionstamp;
        },
      },
      inFlight,
    );
    results.speed(`node/embedded-memory/cas/${inFlight}`, cas.ours, cas.theirs);
  }
  await store.dispose();
  deno.close();
}

export async function embeddedFile(results) {
  const folder = mkdtempSync(join(tmpdir(), 'zlink-bench-'));
  try {
    const store = new ZLinkEmbeddedLocationStore({ path: join(folder, 'ours'), operationTimeoutMs: 30_000 });
    const deno = await openKv(join(folder, 'deno.db'));
    const sqlite = new Database(join(folder, 'sqlite.db'));
    sqlite.pragma('journal_mode = WAL');
    sqlite.pragma('synchronous = FULL');
    sqlite.exec('CREATE TABLE kv (k TEXT PRIMARY KEY, v BLOB) WITHOUT ROWID');
    const upsert = sqlite.prepare('INSERT INTO kv VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v');
    const lmdb = openLmdb({ path: join(folder, 'lmdb'), encoding: 'binary' });
    const key = (lane, i) => `actor/${lane}/${i % 1_000}`;
    // Each write has other bytes than the one before it: SQLite writes nothing, and so syncs nothing, where nothing changes.
    let writes = 0;
    const value = () => {
      const bytes = Buffer.from(VALUE);
      bytes.writeUInt32LE(writes++ >>> 0);
      return bytes;
    };
    for (const inFlight of [1, LANES]) {
      const { ours, ...rivals } = await row(
        {
          ours: (lane, i) => store.write({ conditions: [], mutations: [put(key(lane, i), value())] }),
          '@deno/kv': (lane, i) => deno.set(['actor', lane, i % 1_000], value()),
          'better-sqlite3, WAL, synchronous=FULL': async (lane, i) => upsert.run(key(lane, i), value()),
          'lmdb, put and flushed': async (lane, i) => {
            await lmdb.put(key(lane, i), value());
            await lmdb.flushed;
          },
        },
        inFlight,
      );
      const sorted = Object.entries(rivals).sort(([, a], [, b]) => median(b.perSecond) - median(a.perSecond));
      const [against, best] = sorted[0];
      const remarks = sorted.slice(1).map(([rival, { perSecond }]) => `${rival}: ${Math.round(median(perSecond))}`);
      results.speed(`node/embedded-file/put/${inFlight}`, ours, best, { against, remarks: remarks.join('; ') });
    }
    await store.dispose();
    deno.close();
    sqlite.close();
    await lmdb.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
