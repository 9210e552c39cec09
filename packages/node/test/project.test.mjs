// Project state and locks: what is Node's own. What every language promises is in tests/conformance.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { after, describe, test } from 'node:test';
import { runInNewContext } from 'node:vm';
import {
  LockLostError,
  LockUnavailableError,
  Project,
  RateLimitError,
  StateConflictError,
  ValidationError,
} from '@zlink-systems/project-state';
import { ping, stats } from '@zlink-systems/store-native';
import { startServer } from './support/servers.mjs';

const projects = [];
function open(options) {
  const project = new Project({ url: 'memory:', workspace: 'workspace', project: 'project', ...options });
  projects.push(project);
  return project;
}
after(() => Promise.all(projects.map((project) => project.dispose())));

const invalid = (argument) => (error) => {
  assert.ok(error instanceof ValidationError, String(error));
  assert.equal(error.argument, argument);
  assert.equal(error.code, 'ZLINK_STORE_INVALID_ARGUMENT');
  assert.ok(error.message.startsWith(argument), error.message);
  return true;
};

describe('a project', () => {
  test('wrong options are named when it is made', () => {
    assert.throws(() => new Project(), invalid('options'));
    assert.throws(() => open({ url: undefined }), invalid('url'));
    assert.throws(() => open({ url: 'nothing' }), invalid('url'));
    assert.throws(() => open({ workspace: 'a b' }), invalid('workspace'));
    assert.throws(() => open({ workspace: '\ud800' }), invalid('workspace'));
    assert.throws(() => open({ project: '' }), invalid('project'));
    assert.throws(() => open({ operationTimeoutMs: 0 }), invalid('operationTimeoutMs'));
    assert.throws(() => open({ keyPrefix: 'p' }), invalid('keyPrefix'));
  });

  test('no password is in any message', () => {
    assert.throws(
      () => open({ url: 'redis://user:s3cret@host:port' }),
      (error) => invalid('url')(error) && !error.message.includes('s3cret'),
    );
  });

  test('it is pinged and counted like a store, and closed once', async () => {
    const project = open();
    assert.ok((await ping(project)) instanceof Date);
    await project.state.namespace('n').get('k');
    await project.locks().acquire('k');
    assert.equal(stats(project).operations.read, 1);
    assert.equal(stats(project).operations.acquire, 1);
    await Promise.all([project.dispose(), project.dispose()]);
    const closed = { name: 'ZLinkStoreError', code: 'ZLINK_STORE_CLOSED', outcome: 'notApplied' };
    await assert.rejects(project.state.namespace('n').get('k'), closed);
    await assert.rejects(async () => project.locks().acquire('k'), closed);
  });
});

describe('state', () => {
  test('a namespace is checked at once, and cannot be changed', () => {
    const { state } = open();
    assert.throws(() => state.namespace('a b'), invalid('namespace'));
    assert.throws(() => state.namespace(7), invalid('namespace'));
    assert.throws(() => state.namespace('\ud800'), invalid('namespace'));
    const namespace = state.namespace('n');
    assert.equal(namespace.name, 'n');
    assert.throws(() => {
      namespace.name = 'other';
    }, TypeError);
  });

  test('what JSON.stringify makes of a value comes back', async () => {
    const namespace = open().state.namespace('n');
    const date = new Date(0);
    const values = [
      null,
      0,
      -0,
      '',
      '\ud800',
      { a: undefined, b: [undefined, () => {}] },
      date,
      [[[]]],
      { toJSON: () => 'own' },
    ];
    for (const value of values) {
      const { value: stored } = await namespace.set('k', value);
      assert.deepEqual(stored, JSON.parse(JSON.stringify(value)));
      assert.deepEqual((await namespace.get('k')).value, stored);
    }
  });

  test('what JSON.stringify makes nothing of is refused', async () => {
    const namespace = open().state.namespace('n');
    const circle = {};
    circle.circle = circle;
    const own = new Error('own');
    const throwing = {
      toJSON() {
        throw own;
      },
    };
    for (const value of [undefined, () => {}, Symbol('s'), 1n, circle, throwing]) {
      await assert.rejects(namespace.set('k', value), invalid('value'));
    }
    await assert.rejects(namespace.set('k', throwing), (error) => error.cause === own);
    await assert.rejects(namespace.set('k', 'x'.repeat(50_000_000)), invalid('value'));
    assert.equal(await namespace.get('k'), null);
  });

  test('a promise is no value, and the error says what to do', async () => {
    const namespace = open().state.namespace('n');
    for (const promise of [
      Promise.resolve(1),
      Promise.reject(new Error('unheard')),
      runInNewContext('Promise.resolve(1)'),
    ]) {
      await assert.rejects(
        namespace.set('k', promise),
        (error) => invalid('value')(error) && /await it/.test(error.message),
      );
      promise.catch(() => {});
    }
    assert.equal(await namespace.get('k'), null);
  });

  test('a conflict says which entry and version, and a lock which it is', async () => {
    const project = open();
    const namespace = project.state.namespace('name/space');
    await namespace.set('k', 1);
    const said =
      (...words) =>
      (error) =>
        words.every((word) => error.message.includes(word));
    await assert.rejects(
      namespace.set('k', 2, { expectedVersion: 0 }),
      said('"k"', '"name/space"', 'expectedVersion is 0'),
    );
    await assert.rejects(namespace.set('k', 2, { expectedVersion: 7 }), said('"k"', '"name/space"', 'version 7'));
    await assert.rejects(namespace.delete('k', { expectedVersion: 7 }), said('"k"', '"name/space"', 'version 7'));
    for (const options of [{}, { namespace: 'name/space' }]) {
      const lease = await project.locks().acquire('lock', options);
      const unavailable = project.locks().withLock('lock', options, assert.fail);
      await assert.rejects(unavailable, said('"lock"', `"${options.namespace ?? 'default'}"`));
      await lease.release();
    }
  });

  test('arguments of a wrong type are named', async () => {
    const namespace = open().state.namespace('n');
    for (const key of [undefined, null, 7, {}, '\ud800']) {
      await assert.rejects(namespace.get(key), invalid('key'));
      await assert.rejects(namespace.set(key, 1), invalid('key'));
      await assert.rejects(namespace.delete(key), invalid('key'));
    }
    for (const wrong of ['1', null, 1n, {}, 1.5, Number.NaN]) {
      await assert.rejects(namespace.set('k', 1, { ttlSeconds: wrong }), invalid('ttlSeconds'));
      await assert.rejects(namespace.set('k', 1, { expectedVersion: wrong }), invalid('expectedVersion'));
      await assert.rejects(namespace.delete('k', { expectedVersion: wrong }), invalid('expectedVersion'));
    }
    await assert.rejects(namespace.set('k', 1, 7), invalid('options'));
    // What would be passed over in silence.
    const { signal } = new AbortController();
    await assert.rejects(namespace.set('k', 1, signal), invalid('options'));
    await assert.rejects(namespace.delete('k', signal), invalid('options'));
    await assert.rejects(namespace.set('k', 1, { ttlMs: 5 }), invalid('ttlMs'));
    await assert.rejects(namespace.delete('k', { version: 5 }), invalid('version'));
    await assert.rejects(namespace.get('k', 'no signal'), invalid('signal'));
  });

  test('an entry has no expiresAt if it does not expire', async () => {
    const namespace = open().state.namespace('n');
    const stays = await namespace.set('k', 1, { ttlSeconds: undefined, expectedVersion: undefined });
    assert.ok(!('expiresAt' in stays));
    assert.equal(
      (await namespace.set('k', 1, { ttlSeconds: 1 })).expiresAt,
      (await namespace.get('k')).updatedAt + 1_000,
    );
  });

  test('errors have the names, codes and outcomes of their kind', async () => {
    const namespace = open().state.namespace('n');
    await namespace.set('k', 1);
    await assert.rejects(namespace.set('k', 1, { expectedVersion: 0 }), (error) => {
      assert.ok(error instanceof StateConflictError && error instanceof Error);
      assert.deepEqual(
        [error.name, error.code, error.outcome, error.retryable],
        ['StateConflictError', 'ZLINK_STATE_CONFLICT', 'notApplied', false],
      );
      assert.match(error.stack, /project\.test\.mjs/);
      return true;
    });
    const others = [new RateLimitError(), new LockLostError(), new LockUnavailableError('k')];
    assert.deepEqual(
      others.map(({ name, code }) => [name, code]),
      [
        ['RateLimitError', 'ZLINK_RATE_LIMIT'],
        ['LockLostError', 'ZLINK_LOCK_LOST'],
        ['LockUnavailableError', 'ZLINK_LOCK_UNAVAILABLE'],
      ],
    );
  });

  test('a signal ends every call', async () => {
    const namespace = open().state.namespace('n');
    const aborted = AbortSignal.abort('why');
    for (const call of [
      () => namespace.get('k', aborted),
      () => namespace.set('k', 1, undefined, aborted),
      () => namespace.delete('k', undefined, aborted),
    ]) {
      await assert.rejects(call(), (reason) => reason === 'why');
    }
    assert.equal(await namespace.get('k'), null);
    const { signal } = new AbortController();
    await namespace.set('k', 1, {}, signal);
    assert.equal(getEventListeners(signal, 'abort').length, 0);
  });
});

describe('locks', () => {
  test('a lease knows what it is, and moves its expiry', async () => {
    const lease = await open().locks().acquire('key', { namespace: 'n', leaseMs: 5_000 });
    assert.deepEqual([lease.key, lease.namespace], ['key', 'n']);
    assert.ok(Number.isSafeInteger(lease.fencingToken));
    assert.match(lease.id, /^[0-9a-f]{32}$/);
    const before = lease.expiresAt;
    assert.equal(await lease.renew(60_000), undefined);
    assert.ok(lease.expiresAt >= before + 55_000);
    assert.equal(await lease.release(), undefined);
    assert.equal(await lease.release(), undefined);
    await assert.rejects(lease.renew(), LockLostError);
  });

  test('a wait that is aborted ends at once, and leaves nothing behind', async () => {
    const locks = open().locks();
    const held = await locks.acquire('k');
    for (let round = 0; round < 100; round++) {
      const controller = new AbortController();
      const waiting = locks.acquire('k', { waitMs: 10_000 }, controller.signal);
      if (round % 2 === 0) await null;
      else await new Promise((resolve) => setImmediate(resolve));
      controller.abort();
      await assert.rejects(waiting, { name: 'AbortError' });
      assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
    }
    await held.release();
    assert.ok(await locks.acquire('k'));
  });

  test('an acquire that is aborted counts no more from then on', async () => {
    const project = open();
    await project.locks().acquire('held');
    const locks = project.locks();
    for (let lease = 0; lease < 15; lease++) await locks.acquire(`k${lease}`);
    for (let round = 0; round < 200; round++) {
      const controller = new AbortController();
      const waiting = locks.acquire('held', { waitMs: 10_000 }, controller.signal);
      // In the batch that is not yet submitted, or under way.
      if (round % 2 === 0) await new Promise((resolve) => setImmediate(resolve));
      await assert.rejects(locks.acquire('k15'), invalid('leases'));
      controller.abort();
      const next = locks.acquire('k15');
      await assert.rejects(waiting, { name: 'AbortError' });
      await (await next).release();
    }
  });

  test('a lease that comes when its caller is gone is given back', async () => {
    const locks = open({ url: 'memory:abandoned' }).locks();
    const held = await locks.acquire('k');
    const controller = new AbortController();
    const waiting = locks.acquire('k', { waitMs: 10_000 }, controller.signal);
    await new Promise((resolve) => setImmediate(resolve));
    // The release wakes the waiter on a thread of native code; its lease may be on its way when the signal comes.
    await held.release();
    controller.abort();
    await assert.rejects(waiting, { name: 'AbortError' });
    const next = await locks.acquire('k', { waitMs: 5_000 });
    assert.ok(next, 'nobody holds it for the rest of the 30 s');
  });

  test('leases that a server grants while their callers leave are given back', async (t) => {
    const server = await startServer('single', '--proxy');
    t.after(() => server.stop());
    const slow = open({ url: server.proxyUrl, operationTimeoutMs: 30_000 });
    const other = open({ url: server.url, operationTimeoutMs: 30_000 });
    await (await slow.locks().acquire('warm')).release();
    await server.say('proxy delay replies 300');
    const keys = Array.from({ length: 16 }, (_, i) => `k${i}`);
    let gone = 0;
    await Promise.all(
      keys.map(async (name, i) => {
        // All are granted at once; some callers leave before they hear of it, and some with the answer.
        const waiting = slow.locks().acquire(name, { leaseMs: 60_000 }, AbortSignal.timeout(30 * i));
        const lease = await waiting.catch((error) => assert.equal(error.name, 'TimeoutError'));
        if (lease === undefined) gone++;
        else await lease.release();
      }),
    );
    await server.say('proxy delay replies 0');
    assert.ok(gone > 0, 'nobody left in time');
    const leases = await Promise.all(keys.map((name) => other.locks().acquire(name, { waitMs: 10_000 })));
    assert.ok(leases.every(Boolean), `of ${keys}, not ${keys.filter((_, i) => leases[i] === null)}`);
  });

  test('withLock takes its arguments in both forms, with a signal behind them', async () => {
    const locks = open().locks();
    assert.equal(await locks.withLock('k', (lease) => lease.key), 'k');
    assert.equal(await locks.withLock('k', { namespace: 'n' }, async (lease) => lease.namespace), 'n');
    const aborted = AbortSignal.abort('why');
    await assert.rejects(locks.withLock('k', assert.fail, aborted), (reason) => reason === 'why');
    await assert.rejects(locks.withLock('k', {}, assert.fail, aborted), (reason) => reason === 'why');
    for (const options of [{ namespace: 'n' }, {}, () => {}, 'n']) {
      const wrong = locks.withLock('k', assert.fail, options);
      await assert.rejects(
        wrong,
        (error) =>
          invalid('options')(error) && /before the callback: withLock\(key, options, callback/.test(error.message),
      );
    }
    await assert.rejects(locks.withLock('k'), invalid('callback'));
    await assert.rejects(locks.withLock('k', {}, 7), invalid('callback'));
    assert.ok(await locks.acquire('k'), 'it is free');
  });

  test('a deadline cuts the wait', async () => {
    const project = open();
    await project.locks().acquire('k');
    for (const deadline of [new Date(), Date.now(), 0, new Date(Date.now() + 20)]) {
      assert.equal(await project.locks({ deadline }).acquire('k', { waitMs: 10_000 }), null);
    }
    for (const deadline of ['soon', Number.NaN, new Date(Number.NaN)]) {
      assert.throws(() => project.locks({ deadline }), invalid('deadline'));
    }
  });

  test('a deadline however far away, or never, cuts nothing', async () => {
    const project = open();
    for (const deadline of [Infinity, Number.MAX_VALUE, 2 ** 63, Number.MAX_SAFE_INTEGER, new Date(8.64e15)]) {
      const held = await project.locks().acquire('k');
      const waiting = project.locks({ deadline }).acquire('k', { waitMs: 10_000 });
      await held.release();
      const lease = await waiting;
      assert.ok(lease, `${deadline}`);
      await lease.release();
    }
    await project.locks().acquire('k');
    assert.equal(await project.locks({ deadline: -Infinity }).acquire('k', { waitMs: 10_000 }), null);
  });

  test('arguments of a wrong type are named', async () => {
    const locks = open().locks();
    await assert.rejects(locks.acquire(7), invalid('key'));
    await assert.rejects(locks.acquire('k', { namespace: 7 }), invalid('namespace'));
    await assert.rejects(locks.acquire('k', { waitMs: '1' }), invalid('waitMs'));
    await assert.rejects(locks.acquire('k', { leaseMs: 1n }), invalid('leaseMs'));
    await assert.rejects(locks.acquire('k', new AbortController().signal), invalid('options'));
    await assert.rejects(locks.acquire('k', { wait: 5 }), invalid('wait'));
    await assert.rejects(locks.attach(7), invalid('id'));
    const lease = await locks.acquire('k');
    await assert.rejects(lease.renew('1'), invalid('leaseMs'));
    await assert.rejects(lease.release('no signal'), invalid('signal'));
  });
});
