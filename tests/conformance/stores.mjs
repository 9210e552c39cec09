// Which kinds of store the scenarios use.

/** The verbs that call a store, and the kind of store that each wants. */
export const VERBS = {
  read: 'location',
  write: 'location',
  put: 'location',
  delete: 'location',
  scan: 'location',
  scanAll: 'location',
  blobPut: 'relocation',
  blobRead: 'relocation',
  blobRenew: 'relocation',
  blobDelete: 'relocation',
  stateNamespace: 'project',
  stateGet: 'project',
  stateSet: 'project',
  stateDelete: 'project',
  lockAcquire: 'project',
  lockAttach: 'project',
  lockRenew: 'project',
  lockRelease: 'project',
  lease: 'project',
};

/** The verbs around these that use a project too. */
const OF_PROJECTS = ['locks', 'withLock'];

/** Runs whose stores can't be of every kind, by their list's name (README.md, Comparing languages). */
export const WITHOUT = {
  // A project takes no client.
  'node-redis-client': 'project',
};

/** The kinds of store that these steps use. */
export function storesOf(steps) {
  const found = new Set();
  for (const step of steps) {
    if ('open' in step) found.add(step.store ?? 'location');
    const verb = Object.keys(VERBS).find((name) => name in step);
    if (verb !== undefined) found.add(VERBS[verb]);
    if (OF_PROJECTS.some((name) => name in step)) found.add('project');
    const { steps: inner = [], together = [], until, call } = step;
    for (const kind of storesOf([...inner, ...together, until, call].filter(Boolean))) found.add(kind);
  }
  return found;
}

/** Those of the scenarios that the run of this name executes: all whose stores it has. */
export function scenariosOf(run, scenarios) {
  return scenarios.filter(({ steps }) => !storesOf(steps).has(WITHOUT[run]));
}
