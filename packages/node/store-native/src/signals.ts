// Cancellation by AbortSignal. There is one listener per signal, however many operations wait, and none when none waits.

/** What ends when its signal is aborted. */
export interface Abortable {
  abort(reason: unknown): void;
}

class Watch {
  readonly #signal: AbortSignal;
  readonly #waiting = new Set<Abortable>();
  readonly #listener = () => this.#abort();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  add(operation: Abortable): void {
    const first = this.#waiting.size === 0;
    this.#waiting.add(operation);
    if (!first) return;
    try {
      this.#signal.addEventListener('abort', this.#listener);
    } catch (problem) {
      this.#waiting.delete(operation);
      throw problem;
    }
  }

  remove(operation: Abortable): void {
    if (this.#waiting.delete(operation) && this.#waiting.size === 0) {
      try {
        this.#signal.removeEventListener('abort', this.#listener);
      } catch {
        // Only a signal that is not the platform's own: a listener with nobody behind it does nothing.
      }
    }
  }

  #abort(): void {
    const reason = this.#signal.reason as unknown;
    for (const operation of this.#waiting) {
      this.remove(operation);
      operation.abort(reason);
    }
  }
}

const watches = new WeakMap<AbortSignal, Watch>();

/** Calls `operation.abort` when `signal` is aborted, until `unwatch`. */
export function watch(signal: AbortSignal, operation: Abortable): void {
  let found = watches.get(signal);
  if (found === undefined) {
    found = new Watch(signal);
    watches.set(signal, found);
  }
  found.add(operation);
}

export function unwatch(signal: AbortSignal, operation: Abortable): void {
  watches.get(signal)?.remove(operation);
}

/** Whether this is a signal, of this realm or another. */
export function isSignal(signal: object): signal is AbortSignal {
  const { aborted, addEventListener, removeEventListener } = signal as Partial<AbortSignal>;
  return (
    typeof aborted === 'boolean' && typeof addEventListener === 'function' && typeof removeEventListener === 'function'
  );
}
