// Carries operations to native code and their answers back: what one tick asks for goes over in one batch, and what one wake-up
// brings comes back in one.

import { Awake } from './awake';
import { ClientDesk } from './client-desk';
import { errorOf, thrown, Wrong } from './errors';
import { Lease } from './lease';
import { emit, type LogEvent } from './log';
import {
  type Counters,
  type Limits,
  loadLibrary,
  type NativeBridge,
  type NativeLibrary,
  type OpenedStore,
  type ProjectSettings,
  type StoreSettings,
} from './native';
import { type Carrier, Operation } from './operation';
import type { ExpectedEntry } from './project-errors';
import { settle } from './results';
import { isSignal, watch } from './signals';
import { Answers, Ask, Batch, HEADER, isAnswer, lengthOf, MOST, partOf, Strings, Tell } from './wire';

export class Bridge implements Carrier {
  readonly #native: NativeBridge;
  readonly #batch = new Batch();
  readonly #answers = new Answers();
  /** Those whose ticket has not come back, by ticket. */
  readonly #operations: (Operation | undefined)[] = [];
  readonly #free: number[] = [];
  /** How many callers wait. */
  #waiting = 0;
  /** How many operations the batch has. */
  #asked = 0;
  #held = false;
  #batches = 0;
  #packing = false;
  #scheduled = false;
  #collecting = false;
  readonly #flush = () => {
    this.#scheduled = false;
    this.#submit();
  };
  readonly #awake = new Awake();
  readonly #keeper: Keeper;
  /** Limits that say what need not be copied because it is too large anyway. */
  readonly limits: Limits;
  /** The clients that users brought. */
  readonly clients = new ClientDesk((command, pack) => {
    const start = this.#batch.begin(Ask.ClientReply, 0);
    pack(this.#batch);
    this.#batch.end(start, command);
    this.#schedule();
  });

  constructor(library: NativeLibrary) {
    const keeper: Keeper = { bridge: new WeakRef(this), busy: undefined };
    this.#keeper = keeper;
    const { Bridge: NativeBridge } = library;
    this.limits = NativeBridge.limits();
    const external = process.env['ZLINK_STORE_EXTERNAL_BUFFERS'] !== '0';
    // The native side holds this function for good: it must not hold the bridge.
    this.#native = new NativeBridge(() => keeper.bridge.deref()?.collect(), external);
  }

  open(settings: StoreSettings): OpenedStore {
    const opened = this.#native.open(settings);
    if ('code' in opened) throw errorOf(opened, this.open, Ask.Nothing);
    return opened;
  }

  openProject(settings: ProjectSettings): OpenedStore {
    const opened = this.#native.openProject(settings);
    if ('code' in opened) throw errorOf(opened, this.openProject, Ask.StateGet);
    return opened;
  }

  /** The locks of a project for one invocation. */
  locks(project: number, withinMs: number | undefined): number {
    const opened = this.#native.locks(project, withinMs);
    if ('code' in opened) throw errorOf(opened, this.locks, Ask.LockAcquire);
    return opened.number;
  }

  /** Throws the argument error of a request that is never made. */
  check(kind: Ask, store: number, pack: (batch: Batch) => void): void {
    const batch = this.#batch;
    const start = batch.begin(kind, store);
    try {
      pack(batch);
      batch.end(start, 0);
      const failure = this.#native.check(batch.bytes, start, batch.length - start);
      if (failure !== null) throw errorOf(failure, this.check, kind);
    } catch (problem) {
      throw thrown(problem, kind);
    } finally {
      batch.length = start;
    }
  }

  forget(store: number): void {
    this.#native.forget(store);
  }

  stats(store: number): Counters | null {
    return this.#native.stats(store);
  }

  log(level: string | undefined): void {
    this.#native.log(level);
  }

  /** Begins to pack a request; `pack` throws `Wrong` for a wrong argument. The promise never throws synchronously. */
  ask(
    kind: Ask,
    store: number,
    signal: AbortSignal | null | undefined,
    pack: (batch: Batch) => Details | undefined,
  ): Promise<never> {
    const batch = this.#batch;
    const start = batch.length;
    let details: Details | undefined;
    try {
      // Packing reads properties of the caller's objects, which may be code of the caller's.
      if (this.#packing) throw new Wrong('type', 'request', 'must not use a store while it is being read');
      this.#packing = true;
      try {
        batch.begin(kind, store);
        details = pack(batch);
        if (signal != null && !isSignal(signal)) throw new Wrong('type', 'signal', 'must be an AbortSignal');
        if (signal?.aborted) {
          batch.end(start, 0);
          throw this.#fault(start, kind) ?? signal.reason;
        }
      } finally {
        this.#packing = false;
      }
    } catch (problem) {
      batch.length = start;
      return Promise.reject(thrown(problem, kind));
    }
    const promise = new Promise(grab);
    const operation = new Operation(this, kind, this.#batches, start, grabbedResolve, grabbedReject);
    const ticket = this.#free.pop() ?? this.#operations.length;
    operation.ticket = ticket;
    this.#operations[ticket] = operation;
    batch.end(start, ticket);
    this.#waiting++;
    this.#asked++;
    this.#keeper.busy = this;
    if (details !== undefined) {
      operation.keys = details.keys;
      operation.expected = details.expected;
      operation.blob = details.blob === true;
      operation.payload = details.payload;
    }
    if (details?.beside !== undefined) this.#submit(details.beside);
    else if (batch.length > MOST) this.#submit();
    else this.#schedule();
    // Last: a signal that is not the platform's own may do anything now.
    if (signal != null && operation.open) {
      try {
        operation.signal = signal;
        watch(signal, operation);
      } catch (problem) {
        operation.signal = undefined;
        operation.abort(problem);
      }
    }
    return promise as Promise<never>;
  }

  /** Takes in what native code has to say. */
  collect(): void {
    if (this.#collecting) return;
    this.#collecting = true;
    const waited = this.#waiting;
    try {
      let length = this.#native.collect(this.#answers.bytes);
      while (length !== 0) {
        if (length < 0) this.#answers.resize(-length);
        else this.#unpack(length);
        length = this.#native.collect(this.#answers.bytes);
      }
      this.#answers.shrink();
    } finally {
      this.#collecting = false;
      // A lease that comes too late is released, and so there may be more who wait than before.
      this.#awake.answered(Math.max(0, waited - this.#waiting), this.#waiting);
      this.#hold();
    }
  }

  settled(): void {
    this.#waiting--;
    if (this.#waiting === 0) this.#keeper.busy = undefined;
  }

  withdraw(operation: Operation): unknown {
    if (operation.batch !== this.#batches) {
      this.#native.cancel(operation.ticket);
      return undefined;
    }
    const fault = this.#fault(operation.start, operation.kind);
    this.#batch.cancel(operation.start);
    this.#asked--;
    this.#release(operation.ticket);
    return fault;
  }

  /** The argument error in a request that is not submitted yet. */
  #fault(start: number, kind: Ask): Error | undefined {
    const batch = this.#batch;
    const failure = this.#native.check(batch.bytes, start, batch.length - start);
    return failure === null ? undefined : errorOf(failure, this.ask, kind);
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    resolved.then(this.#flush);
  }

  #submit(beside?: Uint8Array): void {
    const batch = this.#batch;
    if (batch.length === 0) return;
    this.#batches++;
    const asked = this.#asked;
    this.#asked = 0;
    const waited = this.#waiting;
    const answered = this.#native.submit(batch.bytes, batch.length, beside);
    batch.clear();
    if (answered) this.collect();
    else this.#hold();
    const due = asked - (waited - this.#waiting);
    if (due > 0) this.#awake.asked(due, this.#waiting);
  }

  /** The process lives while a caller waits. */
  #hold(): void {
    const hold = this.#waiting > 0;
    if (hold === this.#held) return;
    this.#held = hold;
    this.#native.hold(hold);
  }

  #release(ticket: number): void {
    this.#operations[ticket] = undefined;
    this.#free.push(ticket);
  }

  #unpack(length: number): void {
    const { view } = this.#answers;
    for (let at = 0; at < length; ) {
      const kind = view.getUint32(at, true) as Tell;
      const ticket = view.getUint32(at + 4, true);
      const extra = view.getUint32(at + 8, true);
      const end = at + view.getUint32(at + 12, true);
      if (isAnswer(kind)) {
        const operation = this.#operations[ticket];
        this.#release(ticket);
        if (operation !== undefined) {
          try {
            if (kind === Tell.Lease) this.#lease(operation, extra, at + HEADER);
            else settle(operation, this.#answers, kind, extra, at + HEADER, end, this.#native);
          } catch (error) {
            // No memory for the answer, for example. It is this operation's matter, not its neighbours'.
            operation.reject(error);
          }
        }
      } else {
        this.#tell(kind, ticket, extra, new Strings(this.#answers, at + HEADER));
      }
      at = end;
    }
  }

  #lease(operation: Operation, number: number, at: number): void {
    const lease = new Lease(this, number, new Strings(this.#answers, at));
    if (operation.open) operation.resolve(lease);
    // Nobody waits for it any more, so nobody may hold it.
    else lease.release().catch(() => {});
  }

  #tell(kind: Tell, subject: number, extra: number, fields: Strings): void {
    switch (kind) {
      case Tell.Segment:
        this.#segment(this.#operations[subject], extra, fields.number(), fields.number());
        break;
      case Tell.Command: {
        const args: Buffer[] = [];
        for (let left = fields.word(); left > 0; left--) args.push(Buffer.from(fields.copy().buffer));
        this.clients.send(subject, extra, args);
        break;
      }
      case Tell.CommandDropped:
        this.clients.drop(extra);
        break;
      case Tell.ClientDropped:
        this.clients.remove(subject);
        break;
      default:
        emit({ level: fields.text() as LogEvent['level'], target: fields.text(), message: fields.text() });
    }
  }

  /** Hands over one part of a payload, unless its caller has been answered. */
  #segment(operation: Operation | undefined, question: number, from: number, to: number): void {
    const payload = operation?.payload;
    if (operation === undefined || payload === undefined) {
      this.#native.segment(question);
      return;
    }
    if (lengthOf(payload) < to) {
      operation.reject(new Wrong('type', 'payload', 'was detached while it was being put').error());
      this.#native.segment(question);
      return;
    }
    this.#native.segment(question, partOf(payload, from, to));
  }
}

/** What a request holds besides its record. */
export interface Details {
  keys?: readonly string[];
  expected?: ExpectedEntry;
  blob?: boolean;
  /** Handed over part by part. */
  payload?: Uint8Array;
  /** Handed over with the batch, at once. */
  beside?: Uint8Array;
}

/** Keeps a bridge alive while somebody waits for it. */
interface Keeper {
  readonly bridge: WeakRef<Bridge>;
  busy: Bridge | undefined;
}

const resolved = Promise.resolve();

// A promise's two functions, without a closure for each promise.
let grabbedResolve: (value: unknown) => void;
let grabbedReject: (reason: unknown) => void;
function grab(resolve: (value: unknown) => void, reject: (reason: unknown) => void): void {
  grabbedResolve = resolve;
  grabbedReject = reject;
}

let shared: Bridge | undefined;

/** The bridge of this environment; made, and the library loaded, when the first store is. */
export function bridge(): Bridge {
  shared ??= new Bridge(loadLibrary());
  return shared;
}
