import { atMost } from '../harness.mjs';
import { fill, fillPlain } from '../rig.mjs';

const RECORDS = 100_000;
const RETENTION_MS = 3_600_000;

export async function memory(table, rig) {
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
  for (const [kind, retentionMs, goal, most] of [
    ['durable record', undefined, atMost(1.4), 620],
    ['record with a TTL', RETENTION_MS, atMost(1.7)],
  ]) {
    const ours = await perRecord((store) => fill(store, RECORDS, retentionMs));
    const plain = await perRecord(() => fillPlain(redis, RECORDS, retentionMs));
    const work = `server memory per ${kind} (256 B, 30 B key)`;
    table.ratio(work, [ours], [plain], { unit: 'B', against: 'a plain string key', goal });
    if (most) table.bound('the same', ours, most, 'B', `≤ ${most} B`);
  }
}
