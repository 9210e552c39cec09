// Takes turns on one lock, many at a time: `node.mjs url key waiters`. Says on its output, one a line, what it gets and what it gives back,
// with the times of the machine's monotonic clock (ns) and of its wall clock (ms), and ends when its input ends.
//   ready                                it begins to wait
//   got WAITER TOKEN EXPIRES_AT NS MS    a lease
//   giving WAITER TOKEN NS               before its release
//   none WAITER                          the wait was over without a lease
import { writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';

const require = createRequire(new URL('../../../packages/node/package.json', import.meta.url));
const { LockLostError, Project } = require('@zlink-systems/project-state');

const [url, key, waiters] = process.argv.slice(2);
const project = new Project({ url, workspace: 'waiters', project: 'p', operationTimeoutMs: 30_000 });
const say = (...words) => writeSync(1, `${words.join(' ')}\n`);

async function wait(waiter) {
  const locks = project.locks();
  for (;;) {
    const lease = await locks.acquire(key, { waitMs: 10_000, leaseMs: 5_000 });
    if (lease === null) {
      say('none', waiter);
      continue;
    }
    say('got', waiter, lease.fencingToken, lease.expiresAt, process.hrtime.bigint(), Date.now());
    await pause(5 + Math.random() * 15);
    say('giving', waiter, lease.fencingToken, process.hrtime.bigint());
    await lease.release().catch((error) => {
      // A machine that stands still for 5 s.
      if (!(error instanceof LockLostError)) throw error;
    });
  }
}

process.stdin.on('end', () => process.exit(0)).resume();
say('ready');
for (let waiter = 0; waiter < Number(waiters); waiter++) wait(waiter);
