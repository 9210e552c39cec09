import { fill, fillPlain } from '../rig.mjs';

const RECORDS = 100_000;
const RETENTION_MS = 3_600_000;

export async function memory(results, rig) {
  const { redis } = rig;
  // Each side alone in an empty server, whose scripts and buffers are there already.
  const perRecord = async (put) => {
    await rig.clear();
    const store = rig.locations('bench');
    await fill(store, 1_000);
    await redis.flushAll();
    const before = await rig.info('memory', 'used_memory');
    await put(store);
    return ((await rig.info('memory', 'used_memory')) - before) / RECORDS;
  };
  for (const [kind, retentionMs] of [
    ['durable', undefined],
    ['ttl', RETENTION_MS],
  ]) {
    const ours = await perRecord((store) => fill(store, RECORDS, retentionMs));
    const plain = await perRecord(() => fillPlain(redis, RECORDS, retentionMs));
    results.figures(`node/memory/${kind}`, [ours], [plain]);
    if (kind === 'durable') results.figures('node/memory/bytes', [ours]);
  }
}
