// The steps that call a store: arguments in, a result as plain fields out, and what is checked of every result.

import { VERBS } from '../../conformance/stores.mjs';
import { PROJECT_CALLS, projectResult } from './project.mjs';

const PAGE_BYTES = 4 * 1_048_576;

/**
 * Makes the call that a step describes, on a store, or on a project with its locks. `seen` are the versions and ids that were given out
 * before.
 */
export async function call(verb, step, store, vars, seen, signal = step.cancelled ? AbortSignal.abort() : undefined) {
  try {
    return await CALLS[verb](store, step, vars, signal, seen);
  } catch (error) {
    return errorResult(error, VERBS[verb], signal);
  }
}

/** A failed call as fields; `kind` is the kind of store. What is no error of a store goes on. */
export function errorResult(error, kind, signal) {
  if (signal !== undefined && error === signal.reason) return { error: 'CANCELLED' };
  const result = kind === 'project' ? projectResult(error) : undefined;
  if (result !== undefined) return result;
  const code = /^ZLINK_STORE_([A-Z_]+)$/.exec(error?.code)?.[1];
  if (code === undefined) throw error;
  if (code === 'INVALID_ARGUMENT' && !isArgumentError(error, kind)) {
    throw new Error(`an argument error that is a ${error.name}`, { cause: error });
  }
  const { outcome, argument, message } = error;
  return { error: code, outcome, ...(argument === undefined ? {} : { argument }), message };
}

function isArgumentError(error, kind) {
  return kind === 'project'
    ? error.name === 'ValidationError'
    : error instanceof RangeError || error instanceof TypeError;
}

const CALLS = {
  ...PROJECT_CALLS,

  async read(store, step, vars, signal) {
    const result = await store.read({ value: vars.text(step.read) }, signal);
    if (result.kind === 'missing') return { kind: 'missing', storeNow: time(result.storeNow) };
    const { bytes, version, expiresAt, storeNow } = result.value;
    live(expiresAt, storeNow);
    return { kind: 'found', bytes, ...record(version, expiresAt), storeNow: time(storeNow) };
  },

  write: (store, step, vars, signal, { versions }) => write(store, step.write, vars, signal, versions),
  put: (store, step, vars, signal, { versions }) => write(store, { mutations: [single(step)] }, vars, signal, versions),
  delete: (store, step, vars, signal, { versions }) =>
    write(store, { mutations: [single(step)] }, vars, signal, versions),

  async scan(store, step, vars, signal) {
    const request = scanRequest(step.scan, vars);
    const result = await store.scan(request, signal);
    return result.kind === 'page' ? pageResult(result.value, request) : { kind: result.kind };
  },

  async scanAll(store, step, vars) {
    let request = scanRequest(step.scanAll, vars);
    const all = { kind: 'all', items: [], pages: 0 };
    for (;;) {
      const result = await store.scan(request);
      if (result.kind !== 'page') return { kind: result.kind };
      const page = pageResult(result.value, request);
      all.storeNow ??= page.storeNow;
      all.pages += 1;
      const last = all.items.at(-1);
      if (last !== undefined && page.items.length > 0 && !before(last.key, page.items[0].key)) {
        throw new Error('pages out of order');
      }
      for (const item of page.items) all.items.push(item);
      if (page.nextCursor === undefined) return all;
      request = { ...request, cursor: { value: page.nextCursor } };
    }
  },

  async blobPut(store, step, vars, signal) {
    const reference = { value: vars.text(step.blobPut) };
    const result = await store.put(reference, vars.bytes(step.bytes), vars.number(step.retentionMs), signal);
    if (result.kind === 'alreadyStored') live(result.expiresAt, result.storeNow);
    return blobResult(result);
  },

  async blobRead(store, step, vars, signal) {
    const result = await store.read({ value: vars.text(step.blobRead) }, signal);
    if (result.kind === 'found') live(result.expiresAt, result.storeNow);
    return blobResult(result);
  },

  async blobRenew(store, step, vars, signal) {
    return blobResult(await store.renew({ value: vars.text(step.blobRenew) }, vars.number(step.retentionMs), signal));
  },

  async blobDelete(store, step, vars, signal) {
    const nothing = await store.delete({ value: vars.text(step.blobDelete) }, signal);
    if (nothing !== undefined) throw new Error('a delete that resolves to something');
    return { kind: 'deleted' };
  },
};

/** A step that is one mutation; its `times`, if it has one, was its own. */
function single({ times, from, ...mutation }) {
  return mutation;
}

async function write(store, { conditions = [], mutations = [] }, vars, signal, versions) {
  const request = {
    conditions: vars
      .expand(conditions)
      .map(([form, seen]) =>
        'missing' in form
          ? { kind: 'missing', key: { value: seen.text(form.missing) } }
          : { kind: 'version', key: { value: seen.text(form.version) }, expected: { value: seen.text(form.expected) } },
      ),
    mutations: vars.expand(mutations).map(([form, seen]) =>
      'delete' in form
        ? { kind: 'delete', key: { value: seen.text(form.delete) } }
        : {
            kind: 'put',
            key: { value: seen.text(form.put) },
            bytes: seen.bytes(form.bytes),
            ...('retentionMs' in form ? { retentionMs: seen.number(form.retentionMs) } : {}),
          },
    ),
  };
  const result = await store.write(request, signal);
  if (result.kind === 'conflict') return { kind: 'conflict', storeNow: time(result.storeNow), ...others(result) };
  const keys = result.putVersions.map((put) => put.key.value);
  const puts = request.mutations.filter(({ kind }) => kind === 'put').map(({ key }) => key.value);
  if (keys.length !== puts.length || keys.some((key, at) => key !== puts[at])) {
    throw new Error('putVersions are not the puts in their order');
  }
  const given = result.putVersions.map((put) => put.version.value);
  for (const version of given) {
    if (versions.has(version)) throw new Error(`version ${version} was given out twice`);
    versions.add(version);
  }
  return { kind: 'applied', keys, versions: given, storeNow: time(result.storeNow) };
}

/** What a conflict must not have. */
function others({ kind, storeNow, ...rest }) {
  return rest;
}

function scanRequest({ prefix = '', cursor, limit = 1000 }, vars) {
  return {
    prefix: vars.text(prefix),
    limit: vars.number(limit),
    ...(cursor === undefined ? {} : { cursor: { value: vars.text(cursor) } }),
  };
}

function pageResult(page, request) {
  const items = page.items.map(({ key, value: { bytes, version, expiresAt, storeNow } }) => {
    if (storeNow.getTime() !== page.storeNow.getTime()) throw new Error('an item with another storeNow than its page');
    if (request.cursor === undefined) live(expiresAt, storeNow);
    if (!key.value.startsWith(request.prefix)) throw new Error(`${key.value} does not start with the prefix`);
    return { key: key.value, bytes, ...record(version, expiresAt) };
  });
  const size = ({ key, bytes, version }) => Buffer.byteLength(key) + bytes.length + Buffer.byteLength(version);
  const sizes = items.reduce((sum, item) => sum + size(item), 0);
  if (sizes > PAGE_BYTES && items.length > 1) throw new Error(`a page of ${sizes} bytes`);
  if (items.length > request.limit) throw new Error(`${items.length} items on a page of at most ${request.limit}`);
  if (items.length === 0 && (page.nextCursor !== undefined || request.cursor !== undefined)) {
    throw new Error('an empty page in the middle of a scan');
  }
  if (items.some((item, at) => at > 0 && !before(items[at - 1].key, item.key))) throw new Error('a page out of order');
  const next = 'nextCursor' in page ? { nextCursor: page.nextCursor.value } : {};
  return { kind: 'page', items, ...next, storeNow: time(page.storeNow) };
}

function blobResult({ kind, ...fields }) {
  for (const name of ['expiresAt', 'storeNow']) if (name in fields) fields[name] = time(fields[name]);
  return { kind, ...fields };
}

function record(version, expiresAt) {
  return { version: version.value, ...(expiresAt === undefined ? {} : { expiresAt: time(expiresAt) }) };
}

function time(date) {
  if (!(date instanceof Date) || Number.isNaN(date.getTime())) throw new Error(`${date} is no date`);
  return date.getTime();
}

function live(expiresAt, storeNow) {
  if (expiresAt !== undefined && expiresAt.getTime() <= storeNow.getTime())
    throw new Error('an expired record was given out');
}

function before(a, b) {
  return Buffer.compare(Buffer.from(a), Buffer.from(b)) < 0;
}
