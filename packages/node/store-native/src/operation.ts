// One operation under way, as JavaScript sees it.

import { errorOf } from './errors';
import type { StoreFailure } from './native';
import type { ExpectedEntry } from './project-errors';
import { type Abortable, unwatch } from './signals';
import type { Ask } from './wire';

/** What a bridge does for the operations that it carries. */
export interface Carrier {
  /** The caller was answered. */
  settled(): void;
  /** Ends the native side of an operation; gives back the argument error that goes before the cancellation, if there is one. */
  withdraw(operation: Operation): unknown;
}

export class Operation implements Abortable {
  /** What was asked for. */
  readonly kind: Ask;
  /** Where its record lies, while the batch of that number is being filled. */
  readonly batch: number;
  readonly start: number;
  ticket = 0;
  signal: AbortSignal | undefined;
  /** What a put hands over part by part. */
  payload: Uint8Array | undefined;
  /** The keys that a write puts, in order. */
  keys: readonly string[] | undefined;
  /** What a change of an entry expects. */
  expected: ExpectedEntry | undefined;
  /** Whether what is found is a blob. */
  blob = false;
  #carrier: Carrier | undefined;
  readonly #resolve: (value: unknown) => void;
  readonly #reject: (reason: unknown) => void;

  constructor(
    carrier: Carrier,
    kind: Ask,
    batch: number,
    start: number,
    resolve: (value: unknown) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#carrier = carrier;
    this.kind = kind;
    this.batch = batch;
    this.start = start;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** Whether the caller still waits. */
  get open(): boolean {
    return this.#carrier !== undefined;
  }

  resolve(value: unknown): void {
    if (this.#close()) this.#resolve(value);
  }

  reject(reason: unknown): void {
    if (this.#close()) this.#reject(reason);
  }

  /** Rejects with an error of the core whose stack shows where the caller awaits. */
  fail(failure: StoreFailure): void {
    const { kind } = this;
    this.refuse((raise) => errorOf(failure, raise, kind));
  }

  /** Rejects with the error that `make` makes, whose stack shows where the caller awaits. */
  refuse(make: (raise: () => never) => Error): void {
    if (!this.#close()) return;
    // An error made here and now would show the wake-up from native code. Made in a reaction of a promise that leads to the
    // caller's, it shows the functions that await that: the engine looks them up, so that a success pays nothing for it.
    let begin: () => void = () => {};
    const started = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const failing = started.then(function raise() {
      throw make(raise as () => never);
    });
    this.#resolve(failing);
    begin();
  }

  abort(reason: unknown): void {
    const carrier = this.#carrier;
    if (carrier === undefined) return;
    this.reject(carrier.withdraw(this) ?? reason);
  }

  #close(): boolean {
    const carrier = this.#carrier;
    if (carrier === undefined) return false;
    this.#carrier = undefined;
    this.payload = undefined;
    if (this.signal !== undefined) unwatch(this.signal, this);
    carrier.settled();
    return true;
  }
}
