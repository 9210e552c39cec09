// A project whose calls go to two participants: an object as the seed declares it, over the wire (README.md).
import { createRequire } from 'node:module';

const require = createRequire(new URL('../../packages/node/package.json', import.meta.url));
const { LockLostError, RateLimitError, StateConflictError, ValidationError } = require('@zlink-systems/project-state');

/** What stands for an error of a class of its own. */
const ERRORS = { conflict: StateConflictError, limitReached: RateLimitError, lost: LockLostError };

/** Every invocation and every lease has a number of its own at each participant. */
let made = 0;

export function project(send, place) {
  const ask = async (request, signal, to) => {
    let result;
    try {
      result = await send(request, signal, to);
    } catch (error) {
      throw error.code === 'ZLINK_STORE_INVALID_ARGUMENT' ? new ValidationError(error.message, error.argument) : error;
    }
    if (result.kind in ERRORS) throw new ERRORS[result.kind]();
    return result;
  };
  return {
    state: { namespace: (name) => namespace(ask, name) },
    locks: ({ deadline } = {}) => locks(ask, place, { invocation: ++made, deadline }),
  };
}

function namespace(ask, name) {
  const entry = ({ kind, json, ...fields }) => ({ value: JSON.parse(json), ...fields });
  return {
    name,
    async get(key, signal) {
      const result = await ask({ do: 'stateGet', namespace: name, key }, signal);
      return result.kind === 'missing' ? null : entry(result);
    },
    async set(key, value, options, signal) {
      const json = JSON.stringify(value);
      return entry(await ask({ do: 'stateSet', namespace: name, key, json, ...options }, signal));
    },
    async delete(key, options, signal) {
      return (await ask({ do: 'stateDelete', namespace: name, key, ...options }, signal)).kind === 'deleted';
    },
  };
}

function locks(ask, place, invocation) {
  const { acquires, attaches } = place.invocation();
  return {
    async acquire(key, options, signal) {
      const to = acquires();
      const number = ++made;
      const result = await ask({ do: 'lockAcquire', ...invocation, lease: number, key, ...options }, signal, to);
      return result.kind === 'unavailable' ? null : lease(ask, to, number, result);
    },
    async attach(id, signal) {
      const to = attaches();
      const number = ++made;
      return lease(
        ask,
        to,
        number,
        await ask({ do: 'lockAttach', ...invocation, lease: number, leaseId: id }, signal, to),
      );
    },
  };
}

/** A lease lives at the participant that brought it. */
function lease(ask, at, number, { kind, ...fields }) {
  return {
    ...fields,
    async renew(leaseMs, signal) {
      this.expiresAt = (await ask({ do: 'lockRenew', lease: number, leaseMs }, signal, at)).expiresAt;
    },
    async release(signal) {
      await ask({ do: 'lockRelease', lease: number }, signal, at);
    },
  };
}
