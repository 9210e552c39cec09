// Errors of project state and locks.

import type { ZLinkStoreOutcome } from './errors';

type From = (...args: never[]) => unknown;

/** An error of project state or a lock. Nothing was changed. */
abstract class ProjectError extends Error {
  abstract readonly code: string;
  readonly outcome: ZLinkStoreOutcome = 'notApplied';
  /** Whether the same call may succeed later without anybody mending anything. */
  readonly retryable: boolean = false;

  constructor(message: string, from?: From) {
    super(message);
    // The stack begins at the caller of `from`.
    if (from !== undefined) Error.captureStackTrace(this, from);
  }
}

/** Which version of an entry a call asked for. */
export interface ExpectedEntry {
  readonly namespace: string;
  readonly key: string;
  readonly version: number;
}

/** The expected version was not there. */
export class StateConflictError extends ProjectError {
  override readonly code = 'ZLINK_STATE_CONFLICT';
  constructor(expected?: ExpectedEntry, from?: From) {
    super(`${conflict(expected)}; read it and try again`, from);
  }
}

function conflict(expected: ExpectedEntry | undefined): string {
  if (expected === undefined) return 'the entry does not have the expected version';
  const { namespace, key, version } = expected;
  const entry = `entry ${JSON.stringify(key)} in namespace ${JSON.stringify(namespace)}`;
  return version === 0
    ? `there is an ${entry}, expectedVersion is 0`
    : `the ${entry} does not have the expected version ${version}`;
}

/** The project has 100,000 live entries, and this would be one more. */
export class RateLimitError extends ProjectError {
  override readonly code = 'ZLINK_RATE_LIMIT';
  override readonly retryable = true;
  constructor(from?: From) {
    super('the project has 100000 live state entries; delete some, or let some expire', from);
  }
}

/** An argument is outside the limits; nothing was sent. */
export class ValidationError extends ProjectError {
  override readonly code = 'ZLINK_STORE_INVALID_ARGUMENT';
  /** Which argument, if one is to blame. */
  declare readonly argument?: string;
  constructor(message: string, argument?: string) {
    super(message);
    if (argument) this.argument = argument;
  }
}

/** The lease was released, has expired, or never was. */
export class LockLostError extends ProjectError {
  override readonly code = 'ZLINK_LOCK_LOST';
  constructor(from?: From) {
    super('the lease is lost: it was released, or it has expired', from);
  }
}

/** The lock could not be had in time. */
export class LockUnavailableError extends ProjectError {
  override readonly code = 'ZLINK_LOCK_UNAVAILABLE';
  override readonly retryable = true;
  constructor(key: string, namespace = 'default') {
    super(`the lock ${JSON.stringify(key)} in namespace ${JSON.stringify(namespace)} could not be had in time`);
  }
}

// On the prototypes, as the built-in errors have it: it is no property of a single error.
for (const ErrorClass of [StateConflictError, RateLimitError, ValidationError, LockLostError, LockUnavailableError]) {
  Object.defineProperty(ErrorClass.prototype, 'name', { value: ErrorClass.name, configurable: true, writable: true });
}
