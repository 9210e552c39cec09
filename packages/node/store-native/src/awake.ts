// Keeps this thread from falling asleep for an answer that is about to come.
//
// A thread that sleeps is woken by the kernel, which takes 20 to 50 µs where the processor has gone idle: as long as everything
// else that a read of a near server takes. So the event loop goes round without waiting while an answer is due, for a moment at
// most, and everything else in it goes on. Where answers take longer than that moment, it soon gives up, and tries again now
// and then.

import { performance } from 'node:perf_hooks';
import { clearImmediate, setImmediate } from 'node:timers';

/** How long it stays awake for one answer, in milliseconds. */
const MOMENT = 0.2;
/** With more than this under way it is busy anyway. */
const FEW = 8;
/** How many times in vain before it only tries now and then. */
const PATIENCE = 4;
/** One time in so many, then. */
const RARELY = 64;

export class Awake {
  #next: NodeJS.Immediate | undefined;
  #until = 0;
  /** Answers that it stays awake for. */
  #due = 0;
  /** Answers that it gave up waiting for: when they come, staying awake was still in vain. */
  #late = 0;
  #vain = 0;
  #left = 0;

  /** So many operations went out and are to be answered, of all that callers wait for. */
  asked(operations: number, waiting: number): void {
    if (waiting > FEW) return;
    if (this.#vain >= PATIENCE) {
      if (this.#left > 0) {
        this.#left--;
        return;
      }
      this.#left = RARELY - 1;
    }
    this.#until = performance.now() + MOMENT;
    this.#due += operations;
    this.#next ??= setImmediate(this.#round);
  }

  /** So many answers came; so many callers still wait. */
  answered(operations: number, waiting: number): void {
    const late = Math.min(operations, this.#late);
    this.#late = waiting > 0 ? this.#late - late : 0;
    if (this.#next === undefined || operations <= late) return;
    this.#due -= operations - late;
    this.#vain = 0;
    if (this.#due > 0) return;
    // Nothing that a test runner would find open.
    clearImmediate(this.#next);
    this.#next = undefined;
    this.#due = 0;
  }

  readonly #round = (): void => {
    if (performance.now() < this.#until) {
      this.#next = setImmediate(this.#round);
      return;
    }
    this.#vain++;
    this.#late += this.#due;
    this.#next = undefined;
    this.#due = 0;
  };
}
