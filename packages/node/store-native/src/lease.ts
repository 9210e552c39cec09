// A lease as users see it.

import { numberOf } from './arguments';
import type { Bridge } from './bridge';
import type { LockLease } from './project';
import { Ask, type Strings } from './wire';

/** The native side of a lease that nobody can reach any more is forgotten; the lock is free when it expires. */
const collected = new FinalizationRegistry<{ bridge: Bridge; number: number }>(({ bridge, number }) =>
  bridge.forget(number),
);

export class Lease implements LockLease {
  readonly id: string;
  readonly key: string;
  readonly namespace: string;
  readonly fencingToken: number;
  readonly #bridge: Bridge;
  readonly #number: number;
  #expiresAt: number;

  /** `fields` are those of the answer that brought it. */
  constructor(bridge: Bridge, number: number, fields: Strings) {
    this.#bridge = bridge;
    this.#number = number;
    this.fencingToken = fields.number();
    this.#expiresAt = fields.number();
    this.id = fields.text();
    this.namespace = fields.text();
    this.key = fields.text();
    collected.register(this, { bridge, number });
  }

  get expiresAt(): number {
    return this.#expiresAt;
  }

  async renew(leaseMs?: number, signal?: AbortSignal): Promise<void> {
    const renewed: Promise<number> = this.#bridge.ask(Ask.LockRenew, this.#number, signal, (batch) => {
      batch.optional(leaseMs === undefined ? undefined : numberOf(leaseMs, 'leaseMs'));
      return undefined;
    });
    this.#expiresAt = await renewed;
  }

  async release(signal?: AbortSignal): Promise<void> {
    await this.#bridge.ask(Ask.LockRelease, this.#number, signal, () => undefined);
  }
}
