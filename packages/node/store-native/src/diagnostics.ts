// What operators ask of a store, of whichever package it is.

import { bridge } from './bridge';
import { Wrong } from './errors';
import { type Handle, handleOf } from './handle';
import { isLevel, type LogEvent, listen } from './log';
import { Ask } from './wire';

/** A store of one of the ZLink packages. */
export interface ZLinkNativeStore {
  dispose(): Promise<void>;
}

/** What a store has counted since it was made. */
export interface ZLinkStoreStats {
  /** Operations begun, by kind: `read`, `write`, `scan`, `put`, `renew`, `delete`, `ping`, `acquire`, `attach`, `release` (state's `get` and `set` count as `read` and `write`). */
  readonly operations: Readonly<Record<string, number>>;
  /** Failures by code, without the prefix: `TIMEOUT` …; codes that never came are left out. */
  readonly errors: Readonly<Record<string, number>>;
  /** Finished operations by latency: entry `i` counts those of 2^i up to 2^(i+1) microseconds; entry 0 the faster ones, too. */
  readonly latencyUsLog2: readonly number[];
  readonly inFlight: number;
  /** Connections made again after a loss; shared by the stores on one connection. */
  readonly reconnects: number;
  /** Commands sent to the server; shared by the stores on one connection. */
  readonly commandsSent: number;
}

/** Asks the store's engine for its clock: shows that it answers, within the store's operation timeout. */
export function ping(store: ZLinkNativeStore, signal?: AbortSignal): Promise<Date> {
  try {
    return ours(store).ask(Ask.Ping, signal, () => undefined);
  } catch (error) {
    return Promise.reject(error);
  }
}

/** A snapshot of the store's counters. */
export function stats(store: ZLinkNativeStore): ZLinkStoreStats {
  const counters = ours(store).stats();
  if (counters === null) throw new Error('the store is gone');
  return counters;
}

/**
 * Calls `listener` for log events of at least `level` (`warn` if left out) of all stores of this process, until the returned
 * function is called. A listener keeps no process alive.
 */
export function onLog(listener: (event: LogEvent) => void, level: LogEvent['level'] = 'warn'): () => void {
  if (typeof listener !== 'function') throw new Wrong('type', 'listener', 'must be a function').error();
  if (!isLevel(level)) throw new Wrong('range', 'level', "must be 'error', 'warn', 'info', 'debug' or 'trace'").error();
  // One listener may listen twice.
  const own = (event: LogEvent) => listener(event);
  bridge().log(listen(own, level));
  return () => bridge().log(listen(own, undefined));
}

function ours(store: object): Handle {
  const handle = typeof store === 'object' && store !== null ? handleOf(store) : undefined;
  if (handle === undefined) throw new Wrong('type', 'store', 'must be a store of a ZLink package').error();
  return handle;
}
