// A private Redis for tests: a free port, a private folder, ended with the test run.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/** Servers that run; a test that failed before it stopped its own must neither keep the run alive nor leave it behind. */
const running = new Set();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts `redis-server` with further settings; waits until it accepts connections. */
export function startRedis(...settings) {
  return start(freePort, settings);
}

/** The same on a port that is known to be free. */
export function startRedisAt(port, ...settings) {
  return start(() => port, settings);
}

async function start(choosePort, settings) {
  const folder = mkdtempSync(join(tmpdir(), 'zlink-redis-'));
  for (let attempt = 0; attempt < 10; attempt++) {
    const port = await choosePort();
    const all = ['--port', port, '--bind', '127.0.0.1', '--save', '', '--dir', folder, ...settings].map(String);
    const child = spawn('redis-server', all, { stdio: 'ignore' });
    running.add(child);
    child.once('exit', () => running.delete(child)).unref();
    const ended = new Promise((resolve, reject) => {
      child.once('exit', resolve);
      child.once('error', reject);
    });
    ended.catch(() => {});
    while (child.exitCode === null && child.pid !== undefined) {
      if (await accepts(port)) return new Redis(port, folder, child, ended);
      await pause(10);
    }
    if (child.pid === undefined) await ended;
  }
  throw new Error('redis-server does not start; is it installed?');
}

class Redis {
  constructor(port, folder, child, ended) {
    this.port = port;
    this.folder = folder;
    this.child = child;
    this.ended = ended;
    this.url = `redis://127.0.0.1:${port}`;
  }

  /** Sends one command on a connection of its own, and gives back what the server says, undecoded. */
  command(...words) {
    return new Promise((resolve, reject) => {
      const socket = connect(this.port, '127.0.0.1');
      let said = '';
      socket.setEncoding('latin1').on('error', reject);
      socket.on('data', (data) => {
        said += data;
        if (said.endsWith('+end\r\n')) socket.end(() => resolve(said.slice(0, -'+end\r\n'.length)));
      });
      const pack = (list) =>
        `*${list.length}\r\n${list.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`;
      socket.write(pack(words.map(String)) + pack(['EVAL', "return {ok='end'}", '0']));
    });
  }

  async stop() {
    this.child.ref();
    this.child.kill('SIGKILL');
    await this.ended;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('close', () => {});
    socket.once('connect', () => socket.destroy());
  });
}
