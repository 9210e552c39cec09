// One instance for both module systems.
export type {
  DistributedLocks,
  InvocationOptions,
  LockLease,
  LockOptions,
  ProjectOptions,
  ProjectState,
  StateDeleteOptions,
  StateEntry,
  StateNamespace,
  StateWriteOptions,
} from './index.js';
export {
  LockLostError,
  LockUnavailableError,
  Project,
  RateLimitError,
  StateConflictError,
  ValidationError,
} from './index.js';
