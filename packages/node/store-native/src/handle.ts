// What stands behind a store object.

import type { Bridge, Details } from './bridge';
import { bridge } from './bridge';
import { thrown } from './errors';
import type { Limits, StoreSettings } from './native';
import type { RedisClient } from './redis-client';
import { Ask, type Batch } from './wire';

/** A store that is collected without being disposed gives up its connection all the same. */
const collected = new FinalizationRegistry<{ bridge: Bridge; number: number }>(({ bridge, number }) =>
  bridge.forget(number),
);

const handles = new WeakMap<object, Handle>();

export class Handle {
  readonly #bridge: Bridge;
  readonly number: number;
  /** Whether operations are done at once, without any I/O. */
  readonly inline: boolean;
  #disposed: Promise<void> | undefined;
  /** The number of the user's Redis client. */
  #client: number | undefined;

  /** `settings` throws `Wrong` for wrong options. */
  constructor(owner: object, settings: () => { settings: StoreSettings; client?: RedisClient }) {
    try {
      const { settings: wanted, client } = settings();
      this.#bridge = bridge();
      const opened = this.#open(wanted, client);
      this.number = opened.number;
      this.inline = opened.inline;
    } catch (problem) {
      throw thrown(problem);
    }
    handles.set(owner, this);
    collected.register(owner, { bridge: this.#bridge, number: this.number });
  }

  ask<T>(kind: Ask, signal: AbortSignal | null | undefined, pack: (batch: Batch) => Details | undefined): Promise<T> {
    return this.#bridge.ask(kind, this.number, signal, pack);
  }

  get limits(): Limits {
    return this.#bridge.limits;
  }

  dispose(): Promise<void> {
    this.#disposed ??= this.#close();
    return this.#disposed;
  }

  async #close(): Promise<void> {
    await this.ask<void>(Ask.Close, undefined, () => undefined);
    if (this.#client !== undefined) this.#bridge.clients.remove(this.#client);
  }

  stats() {
    return this.#bridge.stats(this.number);
  }

  #open(settings: StoreSettings, client: RedisClient | undefined) {
    if (client === undefined) return this.#bridge.open(settings);
    const number = this.#bridge.clients.add(client);
    try {
      this.#client = number;
      return this.#bridge.open({ ...settings, client: number });
    } catch (error) {
      this.#bridge.clients.remove(number);
      throw error;
    }
  }
}

/** The handle of a store object of ours. */
export function handleOf(store: object): Handle | undefined {
  return handles.get(store);
}
