// The steps that call a project's state and locks.

/** What the classes of errors stand for. */
const KINDS = {
  StateConflictError: { code: 'ZLINK_STATE_CONFLICT', kind: 'conflict' },
  RateLimitError: { code: 'ZLINK_RATE_LIMIT', kind: 'limitReached' },
  LockLostError: { code: 'ZLINK_LOCK_LOST', kind: 'lost' },
  LockUnavailableError: { code: 'ZLINK_LOCK_UNAVAILABLE', kind: 'unavailable' },
};

/** The result that an error of a project's own stands for, if it is one. */
export function projectResult(error) {
  const known = KINDS[error?.name];
  if (known === undefined) return undefined;
  if (error.code !== known.code) throw new Error(`a ${error.name} of the code ${error.code}`, { cause: error });
  return { kind: known.kind };
}

/** `subject` is a project and its locks for one invocation; `ids` are those of all leases granted before. */
export const PROJECT_CALLS = {
  stateNamespace: async ({ project }, step, vars) => ({
    kind: 'namespace',
    name: project.state.namespace(vars.text(step.stateNamespace)).name,
  }),

  async stateGet({ project }, step, vars, signal) {
    const entry = await namespace(project, step, vars).get(vars.text(step.stateGet), signal);
    return entry === null ? { kind: 'missing' } : entryResult('entry', entry);
  },

  async stateSet({ project }, step, vars, signal) {
    const value = 'noJson' in step ? NO_JSON[step.noJson]() : JSON.parse(vars.text(step.json));
    const options = numbers(step, vars, ['expectedVersion', 'ttlSeconds']);
    const key = vars.text(step.stateSet);
    return entryResult('stored', await namespace(project, step, vars).set(key, value, options, signal));
  },

  async stateDelete({ project }, step, vars, signal) {
    const options = numbers(step, vars, ['expectedVersion']);
    const there = await namespace(project, step, vars).delete(vars.text(step.stateDelete), options, signal);
    if (typeof there !== 'boolean') throw new Error(`a delete that resolves to ${there}`);
    return { kind: there ? 'deleted' : 'missing' };
  },

  async lockAcquire({ locks }, step, vars, signal, { ids }) {
    const began = performance.now();
    const lease = await locks.acquire(vars.text(step.lockAcquire), lockOptions(step, vars), signal);
    // Whole milliseconds, upwards: a timer counts no finer.
    const tookMs = Math.ceil(performance.now() - began);
    return lease === null ? { kind: 'unavailable', tookMs } : { ...granted(lease, ids), tookMs };
  },

  lockAttach: async ({ locks }, step, vars, signal) =>
    leaseResult(await locks.attach(vars.text(step.lockAttach), signal)),

  async lockRenew(_, step, vars, signal) {
    const lease = leaseOf(step.lockRenew, vars);
    const { leaseMs } = numbers(step, vars, ['leaseMs']) ?? {};
    const nothing = await lease.renew(leaseMs, signal);
    if (nothing !== undefined) throw new Error('a renew that resolves to something');
    return { kind: 'renewed', expiresAt: whole(lease.expiresAt) };
  },

  async lockRelease(_, step, vars, signal) {
    const nothing = await leaseOf(step.lockRelease, vars).release(signal);
    if (nothing !== undefined) throw new Error('a release that resolves to something');
    return { kind: 'released' };
  },

  lease: async (_, step, vars) => leaseResult(leaseOf(step.lease, vars)),
};

/** Calls `withLock`; `inside` runs the callback's steps with the lease as a result. What goes wrong in them is thrown. */
export async function withLock({ locks }, step, vars, { ids }, inside) {
  const own = 'throws' in step ? new Error(vars.text(step.throws)) : undefined;
  let fault;
  const callback = async (lease) => {
    try {
      await inside(granted(lease, ids));
    } catch (error) {
      fault = { error };
    }
    if (own !== undefined) throw own;
    return 'returns' in step ? vars.text(step.returns) : undefined;
  };
  const key = vars.text(step.withLock);
  const options = lockOptions(step, vars);
  let result;
  try {
    const value = await (options === undefined
      ? locks.withLock(key, callback)
      : locks.withLock(key, options, callback));
    result = { kind: 'done', ...(value === undefined ? {} : { value }) };
  } catch (error) {
    if (fault === undefined && (own === undefined || error !== own)) throw error;
    result = { kind: 'failed', value: error.message };
  }
  // A step that failed inside is what went wrong, whatever came of the rest.
  if (fault !== undefined) throw fault.error;
  return result;
}

const NO_JSON = {
  undefined: () => undefined,
  function: () => () => {},
  symbol: () => Symbol('s'),
  bigint: () => 1n,
  cycle() {
    const cycle = {};
    cycle.cycle = cycle;
    return cycle;
  },
};

function namespace(project, step, vars) {
  return project.state.namespace('namespace' in step ? vars.text(step.namespace) : 'ns');
}

/** Those of the step's numbers that it has, or nothing at all. */
function numbers(step, vars, names) {
  const had = names.filter((name) => name in step);
  return had.length === 0 ? undefined : Object.fromEntries(had.map((name) => [name, vars.number(step[name])]));
}

function lockOptions(step, vars) {
  const options = numbers(step, vars, ['waitMs', 'leaseMs']);
  return 'namespace' in step ? { ...options, namespace: vars.text(step.namespace) } : options;
}

function entryResult(kind, { value, version, createdAt, updatedAt, expiresAt, ...others }) {
  const entry = { json: JSON.stringify(value), version, createdAt, updatedAt };
  if (expiresAt !== undefined) entry.expiresAt = whole(expiresAt);
  for (const number of [version, createdAt, updatedAt]) whole(number);
  if (version < 1 || createdAt > updatedAt || (expiresAt !== undefined && expiresAt <= updatedAt)) {
    throw new Error(`an entry makes no sense: ${JSON.stringify(entry)}`);
  }
  if (Object.keys(others).length > 0) throw new Error(`an entry with ${Object.keys(others)}`);
  return { kind, ...entry };
}

function granted(lease, ids) {
  if (ids.has(lease.id)) throw new Error('two grants have the same id');
  ids.add(lease.id);
  return leaseResult(lease);
}

const OBJECT = Symbol('the lease object of a result');

function leaseResult(lease) {
  const { id, key, namespace, fencingToken, expiresAt } = lease;
  return {
    kind: 'lease',
    id,
    key,
    namespace,
    fencingToken: whole(fencingToken),
    expiresAt: whole(expiresAt),
    [OBJECT]: lease,
  };
}

/** The lease object of a saved result. */
function leaseOf(name, vars) {
  const lease = vars.eval({ var: vars.text(name) })[OBJECT];
  if (lease === undefined) throw new Error(`${name} is no lease`);
  return lease;
}

function whole(number) {
  if (!Number.isSafeInteger(number)) throw new Error(`${number} is no safe integer`);
  return number;
}
