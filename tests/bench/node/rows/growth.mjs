import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ZLinkEmbeddedLocationStore } from '@zlink-systems/framework-locations-embedded';
import { ROUNDS, row } from '../harness.mjs';
import { fill, name, put, scan, VALUE } from '../rig.mjs';

const FEW = 10_000;
const MANY = 10 * FEW;

export async function growth(results, rig) {
  await grow(results, 'redis', rig.locations('few'), rig.locations('many'));
}

export async function embeddedGrowth(results) {
  const memory = [new ZLinkEmbeddedLocationStore(), new ZLinkEmbeddedLocationStore()];
  await grow(results, 'memory', ...memory);
  await Promise.all(memory.map((store) => store.dispose()));
  const folder = mkdtempSync(join(tmpdir(), 'zlink-bench-'));
  try {
    const files = ['few', 'many'].map((name) => new ZLinkEmbeddedLocationStore({ path: join(folder, name), operationTimeoutMs: 30_000 }));
    await grow(results, 'file', ...files);
    await Promise.all(files.map((store) => store.dispose()));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What one operation costs with 100k records in the store, against 10k. */
async function grow(results, engine, few, many) {
  await fill(few, FEW);
  await fill(many, MANY);
  const cost = (figures) => figures.map((perSecond) => 1e6 / perSecond);
  const any = (count) => name(Math.floor(Math.random() * count));
  for (const [what, operation] of [
    ['read', (store, count) => store.read({ value: any(count) })],
    ['put', (store, count) => store.write({ conditions: [], mutations: [put(any(count), VALUE)] })],
  ]) {
    const result = await row({ many: () => operation(many, MANY), few: () => operation(few, FEW) }, 64);
    results.figures(`node/growth/${engine}/${what}`, cost(result.many.perSecond), cost(result.few.perSecond));
  }
  const perItem = { many: [], few: [] };
  await scan(few, FEW);
  for (let round = 0; round < ROUNDS; round++) {
    perItem.many.push(((await scan(many, MANY)) / MANY) * 1e6);
    let seconds = 0;
    for (let i = 0; i < 10; i++) seconds += await scan(few, FEW);
    perItem.few.push((seconds / MANY) * 1e6);
  }
  results.figures(`node/growth/${engine}/scan`, perItem.many, perItem.few);
}
