// What stands behind a store object.

import type { Bridge, Details } from './bridge';
import { bridge } from './bridge';
import { thrown } from './errors';
import type { Limits, OpenedStore, StoreSettings } from './native';
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
  readonly #client: number | undefined;

  /** `open` throws `Wrong` for wrong options; `kind` says how errors are called. */
  constructor(owner: object, open: () => Opened, kind = Ask.Nothing) {
    try {
      const { number, inline, client } = open();
      this.#bridge = bridge();
      this.number = number;
      this.inline = inline;
      this.#client = client;
    } catch (problem) {
      throw thrown(problem, kind);
    }
    handles.set(owner, this);
    collected.register(owner, { bridge: this.#bridge, number: this.number });
  }

  ask<T>(kind: Ask, signal: AbortSignal | null | undefined, pack: (batch: Batch) => Details | undefined): Promise<T> {
    return this.#bridge.ask(kind, this.number, signal, pack);
  }

  /** Asks something that lives with this store. */
  askOf<T>(
    number: number,
    kind: Ask,
    signal: AbortSignal | null | undefined,
    pack: (batch: Batch) => Details | undefined,
  ): Promise<T> {
    return this.#bridge.ask(kind, number, signal, pack);
  }

  get limits(): Limits {
    return this.#bridge.limits;
  }

  dispose(): Promise<void> {
    this.#disposed ??= this.#close().catch((problem: unknown) => {
      // It was not even asked for: the next call is.
      this.#disposed = undefined;
      throw problem;
    });
    return this.#disposed;
  }

  async #close(): Promise<void> {
    await this.ask<void>(Ask.Close, undefined, () => undefined);
    if (this.#client !== undefined) this.#bridge.clients.remove(this.#client);
  }

  stats() {
    return this.#bridge.stats(this.number);
  }
}

interface Opened extends OpenedStore {
  readonly client?: number;
}

/** Opens a store, on the user's client if there is one. */
export function openStore({ settings, client }: { settings: StoreSettings; client?: RedisClient }): Opened {
  const own = bridge();
  if (client === undefined) return own.open(settings);
  const number = own.clients.add(client);
  try {
    return { ...own.open({ ...settings, client: number }), client: number };
  } catch (error) {
    own.clients.remove(number);
    throw error;
  }
}

/** The handle of a store object of ours. */
export function handleOf(store: object): Handle | undefined {
  return handles.get(store);
}
