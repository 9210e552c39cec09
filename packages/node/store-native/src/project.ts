/// <reference lib="esnext.disposable" preserve="true" />

// Project state and locks.

import { isPromise } from 'node:util/types';
import { numberOf, objectOf, stringOf } from './arguments';
import { bridge, type Details } from './bridge';
import { thrown, Wrong } from './errors';
import { Handle } from './handle';
import { LockUnavailableError } from './project-errors';
import { isSignal } from './signals';
import { Ask, type Batch } from './wire';

export interface StateEntry<T> {
  readonly value: T;
  /** Counts the writes since the entry was created: 1, 2, 3 … */
  readonly version: number;
  /** Unix milliseconds of the engine's clock, like the other times; not there if the entry does not expire. */
  readonly expiresAt?: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface StateWriteOptions {
  /** 0: only if there is no entry; n > 0: only if the live entry has version n; left out: in any case. */
  readonly expectedVersion?: number;
  /** 1..31,536,000 s from this write on; left out: the entry does not expire, also when it had an expiry before. */
  readonly ttlSeconds?: number;
}

export interface StateDeleteOptions {
  /** 0: only if there is no entry; n > 0: only version n of it; left out: in any case. */
  readonly expectedVersion?: number;
}

/** The entries of one namespace. A key is 1..255 of `A-Z a-z 0-9 . _ : / -`, beginning with a letter or digit. */
export interface StateNamespace {
  readonly name: string;
  /** The live entry, or null. */
  get<T>(key: string, signal?: AbortSignal): Promise<StateEntry<T> | null>;
  /**
   * Writes a JSON value of at most 32,768 bytes of UTF-8 in the form of `JSON.stringify`, and gives back the entry as it
   * stands now. Rejects with `StateConflictError` if the expected version is not there, and with `RateLimitError` if the
   * project has 100,000 live entries and this would be one more; nothing is changed then.
   */
  set<T>(key: string, value: T, options?: StateWriteOptions, signal?: AbortSignal): Promise<StateEntry<T>>;
  /** Whether there was an entry. Rejects with `StateConflictError` if the expected version is not there. */
  delete(key: string, options?: StateDeleteOptions, signal?: AbortSignal): Promise<boolean>;
}

export interface ProjectState {
  /** 1..128 of `A-Z a-z 0-9 . _ : / -`, beginning with a letter or digit; else a `ValidationError` is thrown at once. */
  namespace(name: string): StateNamespace;
}

export interface LockOptions {
  /** `default` if left out. */
  readonly namespace?: string;
  /** How long to wait for the lock, 0..10,000 ms. 0 if left out: it is taken only if it is free and nobody waits. */
  readonly waitMs?: number;
  /** How long the lease lasts, 5,000..60,000 ms; 30,000 if left out. */
  readonly leaseMs?: number;
}

export interface LockLease {
  /** Whoever knows it can renew and release the lease: keep it to yourself. */
  readonly id: string;
  readonly key: string;
  readonly namespace: string;
  /** Larger than that of every earlier lease of this lock: have what the lock guards refuse a smaller one. */
  readonly fencingToken: number;
  /** Unix milliseconds of the engine's clock; moved by `renew`. */
  readonly expiresAt: number;
  /** The lease lasts so long from now on; as long as it was acquired for, if left out. Rejects with `LockLostError`. */
  renew(leaseMs?: number, signal?: AbortSignal): Promise<void>;
  /** Frees the lock; again after a success, it does nothing. Rejects with `LockLostError` if the lease was lost before. */
  release(signal?: AbortSignal): Promise<void>;
}

/** The locks of a project, for one invocation: at most 16 leases at a time, the 17th is a `ValidationError`. */
export interface DistributedLocks {
  /** The lease, or null if the lock could not be had within `waitMs`. A cancelled call leaves no lease behind. */
  acquire(key: string, options?: LockOptions, signal?: AbortSignal): Promise<LockLease | null>;
  /**
   * Acquires, runs the callback and releases. Rejects with `LockUnavailableError` if the lock could not be had, with the
   * callback's error, or else with that of the release. Nothing is renewed by itself. The signal ends the wait for the lock.
   */
  withLock<T>(key: string, callback: (lease: LockLease) => T | Promise<T>, signal?: AbortSignal): Promise<T>;
  withLock<T>(
    key: string,
    options: LockOptions,
    callback: (lease: LockLease) => T | Promise<T>,
    signal?: AbortSignal,
  ): Promise<T>;
  /** The live lease of this id, whoever acquired it. Rejects with `LockLostError` if there is none. */
  attach(id: string, signal?: AbortSignal): Promise<LockLease>;
}

export interface ProjectOptions {
  /** `memory:`, `memory:name`, `file:/folder`, `redis://`, `rediss://`, `redis+unix://` … */
  readonly url: string;
  /** 1..128 of `A-Z a-z 0-9 . _ : / -`, beginning with a letter or digit. */
  readonly workspace: string;
  /** 1..128 of `A-Z a-z 0-9 . _ : / -`, beginning with a letter or digit. */
  readonly project: string;
  /** 5,000 if left out. */
  readonly operationTimeoutMs?: number;
}

export interface InvocationOptions {
  /** When the invocation ends (a `Date` or Unix milliseconds): no wait for a lock goes on past that. */
  readonly deadline?: Date | number;
}

/** State and locks of one project. Nothing connects before the first operation. */
export class Project {
  readonly state: ProjectState;
  readonly #handle: Handle;

  constructor(options: ProjectOptions) {
    const settings = () => {
      const known = ['url', 'workspace', 'project', 'operationTimeoutMs'];
      const { url, workspace, project, operationTimeoutMs } = optionsOf(objectOf(options, 'options'), known);
      const names = {
        url: wellFormed(url, 'url'),
        workspace: wellFormed(workspace, 'workspace'),
        project: wellFormed(project, 'project'),
      };
      return operationTimeoutMs === undefined
        ? names
        : { ...names, operationTimeoutMs: numberOf(operationTimeoutMs, 'operationTimeoutMs') };
    };
    this.#handle = new Handle(this, () => bridge().openProject(settings()), Ask.StateGet);
    this.state = new State(this.#handle);
  }

  /** Locks for one invocation: at most 16 leases at a time. */
  locks(options?: InvocationOptions): DistributedLocks {
    return new Locks(this.#handle, options);
  }

  /** Waits for operations under way, at most for the operation timeout, and lets no new ones in. Leases stay until they expire. */
  dispose(): Promise<void> {
    return this.#handle.dispose();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}

function wellFormed(value: unknown, argument: string): string {
  const text = stringOf(value, argument);
  if (text.isWellFormed()) return text;
  throw new Wrong('range', argument, 'must be valid Unicode (no lone surrogate)');
}

class State implements ProjectState {
  readonly #handle: Handle;

  constructor(handle: Handle) {
    this.#handle = handle;
  }

  namespace(name: string): StateNamespace {
    bridge().check(Ask.StateGet, this.#handle.number, (batch) => {
      batch.text(stringOf(name, 'namespace'), 'namespace');
      batch.text('key', 'key');
    });
    return Object.freeze(new Namespace(this.#handle, name));
  }
}

class Namespace implements StateNamespace {
  readonly #handle: Handle;

  constructor(
    handle: Handle,
    readonly name: string,
  ) {
    this.#handle = handle;
  }

  get<T>(key: string, signal?: AbortSignal): Promise<StateEntry<T> | null> {
    return this.#handle.ask(Ask.StateGet, signal, (batch) => this.#address(batch, key));
  }

  set<T>(key: string, value: T, options?: StateWriteOptions, signal?: AbortSignal): Promise<StateEntry<T>> {
    let text: unknown;
    if (isPromise(value)) {
      return Promise.reject(
        thrown(new Wrong('type', 'value', 'must be a JSON value, got a promise: await it first'), Ask.StateSet),
      );
    }
    try {
      // Before the request is packed: it may run code of the caller's.
      text = JSON.stringify(value);
    } catch (cause) {
      const said = cause instanceof Error ? cause.message : String(cause);
      const error = thrown(new Wrong('type', 'value', `must be a JSON value: ${said}`), Ask.StateSet) as Error;
      error.cause = cause;
      return Promise.reject(error);
    }
    return this.#handle.ask(Ask.StateSet, signal, (batch) => {
      this.#address(batch, key);
      const { expectedVersion, ttlSeconds } = optionsOf<StateWriteOptions>(options, ['expectedVersion', 'ttlSeconds']);
      packNumber(batch, expectedVersion, 'expectedVersion');
      packNumber(batch, ttlSeconds, 'ttlSeconds');
      if (typeof text !== 'string') throw new Wrong('type', 'value', `must be a JSON value, got ${typeof value}`);
      const most = this.#handle.limits.json;
      if (text.length > most) throw new Wrong('range', 'value', `must be at most ${most} bytes of JSON text, got more`);
      batch.text(text, 'value');
      return this.#expected(key, expectedVersion);
    });
  }

  delete(key: string, options?: StateDeleteOptions, signal?: AbortSignal): Promise<boolean> {
    return this.#handle.ask(Ask.StateDelete, signal, (batch) => {
      this.#address(batch, key);
      const { expectedVersion } = optionsOf<StateDeleteOptions>(options, ['expectedVersion']);
      packNumber(batch, expectedVersion, 'expectedVersion');
      return this.#expected(key, expectedVersion);
    });
  }

  /** What a conflict is to tell. */
  #expected(key: string, version: number | undefined): Details | undefined {
    return version === undefined ? undefined : { expected: { namespace: this.name, key, version } };
  }

  #address(batch: Batch, key: string): undefined {
    batch.text(this.name, 'namespace');
    batch.text(stringOf(key, 'key'), 'key');
  }
}

function packNumber(batch: Batch, value: unknown, argument: string): void {
  batch.optional(value === undefined ? undefined : numberOf(value, argument));
}

/** Options of ours, and nothing that would be passed over in silence. */
function optionsOf<T extends object>(options: T | undefined, known: readonly string[]): T {
  const given = objectOf(options ?? ({} as T), 'options');
  if (isSignal(given))
    throw new Wrong('type', 'options', 'must not be a signal, which comes behind all other arguments');
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined && !known.includes(name)) {
      throw new Wrong('type', name, `is not an option; there are ${known.join(', ')}`);
    }
  }
  return given;
}

/** The native side of an invocation that nobody can reach any more. */
const collected = new FinalizationRegistry<number>((number) => bridge().forget(number));

class Locks implements DistributedLocks {
  readonly #handle: Handle;
  readonly #number: number;

  constructor(handle: Handle, options: InvocationOptions | undefined) {
    this.#handle = handle;
    try {
      const { deadline } = optionsOf<InvocationOptions>(options, ['deadline']);
      this.#number = bridge().locks(handle.number, deadline === undefined ? undefined : untilThen(deadline));
    } catch (problem) {
      throw thrown(problem, Ask.LockAcquire);
    }
    collected.register(this, this.#number);
  }

  acquire(key: string, options?: LockOptions, signal?: AbortSignal): Promise<LockLease | null> {
    return this.#handle.askOf(this.#number, Ask.LockAcquire, signal, (batch) => {
      const { namespace, waitMs, leaseMs } = optionsOf<LockOptions>(options, ['namespace', 'waitMs', 'leaseMs']);
      batch.byte(namespace === undefined ? 0 : 1);
      if (namespace !== undefined) batch.text(stringOf(namespace, 'namespace'), 'namespace');
      batch.text(stringOf(key, 'key'), 'key');
      packNumber(batch, waitMs, 'waitMs');
      packNumber(batch, leaseMs, 'leaseMs');
      return undefined;
    });
  }

  async withLock<T>(
    key: string,
    second: LockOptions | ((lease: LockLease) => T | Promise<T>),
    third?: ((lease: LockLease) => T | Promise<T>) | AbortSignal,
    fourth?: AbortSignal,
  ): Promise<T> {
    const short = typeof second === 'function';
    const callback = short ? second : third;
    if (short && third !== undefined && third !== null && !isSignal(third)) {
      const problem = 'must come before the callback: withLock(key, options, callback, signal)';
      throw thrown(new Wrong('type', 'options', problem), Ask.LockAcquire);
    }
    const [options, signal] = short ? [undefined, third as AbortSignal | undefined] : [second, fourth];
    if (typeof callback !== 'function') {
      throw thrown(new Wrong('type', 'callback', 'must be a function'), Ask.LockAcquire);
    }
    const lease = await this.acquire(key, options, signal);
    if (lease === null) throw new LockUnavailableError(key, options?.namespace);
    let result: T;
    try {
      result = await callback(lease);
    } catch (error) {
      // The lease ends by itself if this fails, and the callback's error is what matters.
      await lease.release().catch(() => {});
      throw error;
    }
    await lease.release();
    return result;
  }

  attach(id: string, signal?: AbortSignal): Promise<LockLease> {
    return this.#handle.askOf(this.#number, Ask.LockAttach, signal, (batch) => {
      batch.text(stringOf(id, 'id'), 'id');
      return undefined;
    });
  }
}

function timeOf(deadline: unknown): number {
  if (typeof deadline === 'number') return deadline;
  throw new Wrong('type', 'deadline', 'must be a Date or Unix milliseconds');
}

/** Milliseconds from now until then. */
function untilThen(deadline: unknown): number {
  const at = deadline instanceof Date ? deadline.getTime() : timeOf(deadline);
  if (Number.isNaN(at)) throw new Wrong('range', 'deadline', 'must be a time');
  return Math.max(0, at - Date.now());
}
