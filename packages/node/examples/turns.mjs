// Two workers take turns with a lock; one of them hangs, and what it writes afterwards is refused by its fencing token. Here
// everything runs on the embedded engine in memory; for workers in several processes, only the URL changes.
import { setTimeout as pause } from 'node:timers/promises';
import { LockLostError, Project, StateConflictError } from '@zlink-systems/project-state';

const URL = 'memory:turns';

/** What the lock guards: invoices that keep the largest fencing token they have seen, and refuse a smaller one. */
class Invoices {
  constructor(state) {
    this.entries = state.namespace('invoices');
  }

  async pay(number, amount, token) {
    for (;;) {
      const seen = await this.entries.get(number);
      if (seen && seen.value.token > token) return 'refused';
      const paid = (seen?.value.paid ?? 0) + amount;
      try {
        // Whoever is late in spite of the lock meets the version that it has not seen.
        await this.entries.set(number, { paid, token }, { expectedVersion: seen?.version ?? 0 });
        return 'accepted';
      } catch (error) {
        if (!(error instanceof StateConflictError)) throw error;
      }
    }
  }
}

const open = () => new Project({ url: URL, workspace: 'acme', project: 'billing' });
const [red, blue] = [open(), open()];
const invoices = new Invoices(red.state);
const short = (token) => `…${String(token).slice(-7)}`;

console.log('Two workers want the same lock; each waits for its turn:');
const work = async (name, project) => {
  const locks = project.locks();
  for (let turn = 1; turn <= 3; turn++) {
    await locks.withLock('INV-1', { namespace: 'invoice', waitMs: 5_000 }, async (lease) => {
      const said = await invoices.pay('INV-1', 10, lease.fencingToken);
      console.log(`  ${name}, turn ${turn}: token ${short(lease.fencingToken)}, payment ${said}`);
      await pause(20);
    });
  }
};
await Promise.all([work('red', red), work('blue', blue)]);

console.log('Red takes the lock and hangs. An operator frees it by its id, and blue goes on:');
const stale = await red.locks().acquire('INV-1', { namespace: 'invoice' });
console.log(`  red has token ${short(stale.fencingToken)}`);
const found = await blue.locks().attach(stale.id);
await found.release();
await blue.locks().withLock('INV-1', { namespace: 'invoice' }, async (lease) => {
  console.log(
    `  blue has token ${short(lease.fencingToken)}, payment ${await invoices.pay('INV-1', 10, lease.fencingToken)}`,
  );
});

console.log('Red wakes up and does not know that its time is over:');
console.log(
  `  red pays with token ${short(stale.fencingToken)}: ${await invoices.pay('INV-1', 10, stale.fencingToken)}`,
);
const lost = await stale.release().catch((error) => error);
console.log(`  red releases: ${lost instanceof LockLostError ? 'the lease was lost' : lost}`);

const { value, version } = await invoices.entries.get('INV-1');
console.log(`Paid ${value.paid} in ${version} writes: seven accepted, none twice, none by the stale holder.`);
await Promise.all([red.dispose(), blue.dispose()]);
if (value.paid !== 70 || version !== 7) process.exitCode = 1;
