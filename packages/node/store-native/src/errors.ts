// Errors as users see them.

import type { StoreFailure } from './native';
import { ValidationError } from './project-errors';
import { Ask, isOfProject } from './wire';

/** What kind of failure. Closed results (missing, conflict, expired …) are never errors. */
export type ZLinkStoreErrorCode =
  /** An argument is outside the limits; the engine was not touched. These errors are a `RangeError` or `TypeError`. */
  | 'ZLINK_STORE_INVALID_ARGUMENT'
  /** The operation timeout passed. */
  | 'ZLINK_STORE_TIMEOUT'
  /** No connection, connection lost, cluster down, failover under way, too few replicas acknowledged. */
  | 'ZLINK_STORE_UNAVAILABLE'
  /** Wrong credentials, or a command that the user may not run. */
  | 'ZLINK_STORE_UNAUTHENTICATED'
  /** The engine refused the write for want of memory or disk. */
  | 'ZLINK_STORE_OUT_OF_MEMORY'
  /** Data of a newer layout, a foreign type under our key, or an engine that is too old. */
  | 'ZLINK_STORE_INCOMPATIBLE'
  /** The store was disposed. */
  | 'ZLINK_STORE_CLOSED'
  /** A broken invariant of ours. */
  | 'ZLINK_STORE_INTERNAL';

/** What became of the operation: surely nothing happened, or it may have been applied. */
export type ZLinkStoreOutcome = 'notApplied' | 'unknown';

/**
 * Why an operation gave no result. An argument error is a `RangeError` or `TypeError` with the same properties, and a
 * cancelled operation rejects with the signal's reason.
 */
export class ZLinkStoreError extends Error {
  readonly code: ZLinkStoreErrorCode;
  readonly outcome: ZLinkStoreOutcome;
  /** Whether the same call may succeed later without anybody mending anything. */
  readonly retryable: boolean;

  constructor(message: string, code: ZLinkStoreErrorCode, outcome: ZLinkStoreOutcome, retryable: boolean) {
    super(message);
    this.code = code;
    this.outcome = outcome;
    this.retryable = retryable;
  }
}

// On the prototype, as the built-in errors have it: it is no property of a single error.
Object.defineProperty(ZLinkStoreError.prototype, 'name', {
  value: 'ZLinkStoreError',
  configurable: true,
  writable: true,
});

/** An argument that is wrong, on its way to whoever knows where it stands. */
export class Wrong {
  constructor(
    readonly kind: 'type' | 'range',
    public argument: string,
    readonly problem: string,
  ) {}

  /** The same, seen from outside: `key` inside `mutations[3]` becomes `mutations[3].key`. */
  inside(place: string): this {
    this.argument = `${place}.${this.argument}`;
    return this;
  }

  error(): Error {
    const ErrorType = this.kind === 'type' ? TypeError : RangeError;
    return invalid(new ErrorType(`${this.argument} ${this.problem}`), this.argument);
  }
}

function invalid(error: Error, argument: string | undefined): Error {
  return Object.assign(error, {
    code: 'ZLINK_STORE_INVALID_ARGUMENT',
    outcome: 'notApplied',
    retryable: false,
    ...(argument ? { argument } : undefined),
  });
}

/**
 * An error of the core. The stack begins at the caller of `from`.
 * @internal
 */
export function errorOf(failure: StoreFailure, from: (...args: never[]) => unknown, kind: Ask): Error {
  const error =
    failure.code === 'INVALID_ARGUMENT'
      ? isOfProject(kind)
        ? new ValidationError(failure.message, failure.argument)
        : invalid(new RangeError(failure.message), failure.argument)
      : new ZLinkStoreError(
          failure.message,
          `ZLINK_STORE_${failure.code}` as ZLinkStoreErrorCode,
          failure.outcome as ZLinkStoreOutcome,
          failure.retryable,
        );
  Error.captureStackTrace(error, from);
  return error;
}

/**
 * Turns what was thrown while arguments were looked at into what the user gets.
 * @internal
 */
export function thrown(problem: unknown, kind: Ask = Ask.Nothing): unknown {
  if (!(problem instanceof Wrong)) return problem;
  if (!isOfProject(kind)) return problem.error();
  return new ValidationError(`${problem.argument} ${problem.problem}`, problem.argument);
}
