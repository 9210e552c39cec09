// 50 waiters in 3 processes (two Node, one Java) on one lock of one Redis, whose holders are killed at random (kill -9). ZLINK_WAITERS_SECONDS
// says for how long.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startRedis } from '../node/runner/places.mjs';

const require = createRequire(new URL('../../packages/node/package.json', import.meta.url));
const { Project } = require('@zlink-systems/project-state');

const SECONDS = Number(process.env.ZLINK_WAITERS_SECONDS ?? 8);
const KEY = 'turns';
/** A killed holder's lease goes on for 5 s, and then everybody gets a turn in about 1 s. */
const KILL_EVERY_MS = 7_000;
const ALL_WAIT_MS = 3_000;
const DEADLINE_MS = (SECONDS + 60) * 1_000;

const fileOf = (name) => fileURLToPath(new URL(name, import.meta.url));

const node = () => [process.execPath, fileOf('waiters/node.mjs')];

function java() {
  // `make` has put there what Java needs.
  const classPath = readFileSync(fileOf('../../target/interop-java.classpath'), 'utf8').trim();
  return ['java', '-cp', classPath, fileOf('waiters/Waiters.java')];
}

/** How each process is started, and how many wait there. */
const PROCESSES = [
  [node, 17],
  [node, 17],
  [java, 16],
];

/** A process of waiters, and what it says. */
class Waiters {
  /** The leases that it got, the last one last. */
  leases = [];

  constructor(url, [command, count], onGot) {
    const [program, ...options] = command();
    this.turns = Array(count).fill(0);
    this.process = spawn(program, [...options, url, KEY, count], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.process.stdin.on('error', () => {});
    this.exited = once(this.process, 'exit');
    const lines = createInterface({ input: this.process.stdout });
    /** Whether it has begun to wait, or ended. */
    this.begun = once(lines, 'line');
    lines.on('line', (line) => {
      const [what, waiter, token, ...rest] = line.split(' ');
      if (what === 'got') {
        const [expiresAt, ns, ms] = rest;
        this.turns[waiter]++;
        this.leases.push({ token: Number(token), expiresAt: Number(expiresAt), from: BigInt(ns), ms: Number(ms) });
        onGot(this);
      } else if (what === 'giving') {
        this.leases.find((lease) => lease.token === Number(token)).to = BigInt(rest[0]);
      }
    });
  }

  hadTheirTurns() {
    return this.turns.every((turns) => turns > 0);
  }
}

/** How many commands the processes have sent; the statistics also count those that scripts call, which have other names. */
async function sent(client) {
  const stats = await client.info('commandstats');
  const all = [...stats.matchAll(/^cmdstat_([a-z|-]+):calls=(\d+)/gm)];
  const ofClients = /^(eval|evalsha|fcall|script|ping|hello|auth|client|subscribe|unsubscribe|multi|exec|watch)(\||$)/;
  return all.filter(([, name]) => ofClients.test(name)).reduce((sum, [, , calls]) => sum + Number(calls), 0);
}

test(`${SECONDS} s of 50 waiters in 3 processes on one lock, holders killed`, {
  timeout: DEADLINE_MS + 60_000,
}, async (t) => {
  const redis = await startRedis();
  const all = [];
  t.after(async () => {
    for (const one of all) one.process.kill('SIGKILL');
    await Promise.all(all.map((one) => one.exited));
    await redis.stop();
  });
  await redis.client.connect();

  // Everybody waits for the one that holds it, and asks the server little meanwhile.
  const project = new Project({ url: redis.url, workspace: 'waiters', project: 'p', operationTimeoutMs: 30_000 });
  t.after(() => project.dispose());
  const held = await project.locks().acquire(KEY, { leaseMs: 60_000 });
  let kill = false;
  let kills = 0;
  const running = [];
  const start = (at) => {
    running[at] = new Waiters(redis.url, PROCESSES[at], (holder) => {
      if (!kill || running[at] !== holder) return;
      kill = false;
      kills++;
      holder.process.kill('SIGKILL');
      holder.exited.then(() => start(at));
    });
    all.push(running[at]);
  };
  for (const at of PROCESSES.keys()) start(at);
  await Promise.all(all.map((one) => Promise.race([one.begun, one.exited])));
  await pause(2_000);
  const before = await sent(redis.client);
  const began = performance.now();
  await pause(ALL_WAIT_MS);
  const asked = (await sent(redis.client)) - before;
  const perWaiter = asked / ((performance.now() - began) / 1_000) / 50;
  t.diagnostic(`while all wait: ${perWaiter.toFixed(2)} commands/s per waiter`);
  assert.deepEqual(
    all.map(({ leases }) => leases.length),
    [0, 0, 0],
    'nobody has a lock that another holds',
  );

  await held.release();
  const end = performance.now() + SECONDS * 1_000;
  const deadline = performance.now() + DEADLINE_MS;
  let next = performance.now() + 1_000;
  while (performance.now() < end || !running.every((one) => one.hadTheirTurns())) {
    assert.ok(performance.now() < deadline, `somebody has no turn: ${running.map(({ turns }) => turns.join(' '))}`);
    if (performance.now() > next && performance.now() < end) {
      kill = true;
      next += KILL_EVERY_MS;
    }
    await pause(50);
  }
  kill = false;
  for (const one of running) one.process.kill('SIGKILL');
  await Promise.all(all.map((one) => one.exited));

  const leases = all.flatMap((one) => one.leases).sort((a, b) => (a.from < b.from ? -1 : 1));
  const handOver = [];
  for (const [at, lease] of leases.entries()) {
    const last = leases[at - 1];
    if (last === undefined) continue;
    assert.ok(lease.token > last.token, `token ${lease.token} after ${last.token}`);
    // Until it was given back, or else until it expired.
    const over = (last.to !== undefined && last.to < lease.from) || last.expiresAt <= lease.ms;
    assert.ok(over, `two leases at a time: ${last.token} and ${lease.token}`);
    if (last.to !== undefined) handOver.push(Number(lease.from - last.to) / 1e6);
  }
  assert.ok(kills >= 1);
  assert.ok(perWaiter < 4, `${perWaiter} commands/s per waiter`);
  handOver.sort((a, b) => a - b);
  t.diagnostic(
    `${leases.length} leases, ${kills} holders killed; from a release to the next lease: median ${handOver[handOver.length >> 1].toFixed(2)} ms, p99 ${handOver[Math.floor(handOver.length * 0.99)].toFixed(2)} ms`,
  );
});
