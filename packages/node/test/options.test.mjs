// Options of the Redis stores: what is mapped onto the native connection, what is refused, what goes before what.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ZLinkEmbeddedLocationStore } from '@zlink-systems/framework-locations-embedded';
import { ZLinkRedisLocationStore, ZLinkRedisRelocationStore } from '@zlink-systems/framework-locations-redis';
import * as redis6 from 'redis6';
import { startRedis } from './support/redis.mjs';

const key = (value) => ({ value });
const keyPrefix = 'options';
const SECRET = 'p@ss:/?#% +=wörd';

/** A server that keeps what it is told and answers it all with OK. */
async function recorder() {
  let said = '';
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (data) => {
      said += data.toString('utf8');
      for (const _ of data.toString('latin1').matchAll(/\*\d+\r\n/g)) socket.write('+OK\r\n');
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: server.address().port,
    said: () => said,
    stop: () => new Promise((resolve) => server.close(resolve)),
  };
}

/** What a store with these options tells a server first. */
async function told(options) {
  const server = await recorder();
  const store = new ZLinkRedisLocationStore({ keyPrefix, operationTimeoutMs: 300, ...options(server.port) });
  await store.read(key('a')).catch(() => {});
  await store.dispose();
  await server.stop();
  return server.said();
}
const bulk = (text) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;

describe('clientOptions', () => {
  test('username, password, database and name reach the server as they are', async () => {
    const said = await told((port) => ({
      clientOptions: {
        socket: { host: '127.0.0.1', port },
        username: 'üser',
        password: SECRET,
        database: 7,
        name: 'me',
      },
    }));
    assert.ok(said.includes(bulk('üser') + bulk(SECRET)), 'AUTH');
    assert.ok(said.includes(bulk('7')), 'SELECT');
    assert.ok(said.includes(bulk('me')), 'SETNAME');
  });

  test('a url beside them gives the address, and goes before them', async () => {
    const url = (port, rest = '') => `redis://${rest}127.0.0.1:${port}`;
    const beside = await told((port) => ({
      url: url(port),
      clientOptions: { socket: { host: 'nowhere.invalid', port: 1 }, password: SECRET, database: 5 },
    }));
    assert.ok(beside.includes(bulk(SECRET)) && beside.includes(bulk('5')));
    const own = await told((port) => ({ url: url(port, 'me:mine@'), clientOptions: { password: SECRET } }));
    assert.ok(own.includes(bulk('me') + bulk('mine')) && !own.includes(SECRET));
    const inside = await told((port) => ({ clientOptions: { url: url(port), password: SECRET } }));
    assert.ok(inside.includes(bulk(SECRET)));
  });

  test('a unix socket, and RESP 2 and 3', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'zlink socket '));
    const path = join(folder, 'redis.sock');
    const server = await startRedis('--unixsocket', path);
    for (const clientOptions of [{ socket: { path } }, { socket: { path }, RESP: 2 }, { socket: { path }, RESP: 3 }]) {
      const store = new ZLinkRedisLocationStore({ clientOptions, keyPrefix });
      assert.equal((await store.read(key('a'))).kind, 'missing');
      await store.dispose();
    }
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  const wrong = {
    'clientOptions.pingInterval': { pingInterval: 5 },
    'clientOptions.credentialsProvider': { credentialsProvider: {} },
    'clientOptions.keyPrefix': { keyPrefix: 'x' },
    'clientOptions.socket.reconnectStrategy': { socket: { reconnectStrategy: 5 } },
    'clientOptions.socket.ca': { socket: { ca: 'without tls' } },
    'clientOptions.socket.passphrase': { socket: { tls: true, passphrase: 'x' } },
    'clientOptions.socket.key': { socket: { tls: true, key: [{ pem: 'x' }] } },
    'clientOptions.socket.noDelay': { socket: { noDelay: false } },
  };
  for (const [argument, clientOptions] of Object.entries(wrong)) {
    test(`${argument} cannot be honoured, and the error points to client`, () => {
      const open = () => new ZLinkRedisLocationStore({ clientOptions, keyPrefix });
      assert.throws(open, { code: 'ZLINK_STORE_INVALID_ARGUMENT', argument, message: /give that as client/ });
    });
  }

  const outside = {
    'clientOptions.socket.port': [{ socket: { port: 0 } }, { socket: { port: 65_536 } }, { socket: { port: '6379' } }],
    'clientOptions.socket.host': [{ socket: { host: '' } }, { socket: { host: 5 } }],
    'clientOptions.socket.connectTimeout': [{ socket: { connectTimeout: 0 } }, { socket: { connectTimeout: 1.5 } }],
    'clientOptions.database': [{ database: -1 }, { database: 1.5 }, { database: Number.NaN }, { database: '1' }],
    'clientOptions.name': [{ name: 'two words' }, { name: 5 }],
    'clientOptions.password': [{ password: 5 }, { password: '\ud800' }],
    'clientOptions.RESP': [{ RESP: 4 }],
  };
  for (const [argument, all] of Object.entries(outside)) {
    test(`a wrong ${argument} is an argument error`, () => {
      for (const clientOptions of all) {
        const open = () => new ZLinkRedisLocationStore({ clientOptions, keyPrefix });
        assert.throws(open, { code: 'ZLINK_STORE_INVALID_ARGUMENT', argument });
      }
    });
  }
});

describe('TLS', () => {
  let server;
  let folder;
  let port;
  const file = (name) => readFileSync(join(folder, name));
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'zlink-tls-'));
    const openssl = (...args) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
    const subject = (name) => ['-subj', `/CN=${name}`, '-newkey', 'rsa:2048', '-nodes', '-keyout', `${name}.key`];
    openssl(
      'req',
      '-x509',
      ...subject('ca'),
      '-days',
      '2',
      '-out',
      'ca.crt',
      '-addext',
      'basicConstraints=critical,CA:TRUE',
    );
    for (const name of ['localhost', 'client']) {
      openssl('req', ...subject(name), '-out', `${name}.csr`, '-addext', `subjectAltName=DNS:${name}`);
      const sign = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-copy_extensions', 'copy'];
      openssl('x509', '-req', '-in', `${name}.csr`, ...sign, '-out', `${name}.crt`);
    }
    const taken = await recorder();
    port = taken.port;
    await taken.stop();
    const settings = {
      'tls-port': port,
      'tls-cert-file': 'localhost.crt',
      'tls-key-file': 'localhost.key',
      'tls-ca-cert-file': 'ca.crt',
    };
    const words = Object.entries(settings).flatMap(([name, value]) => [
      `--${name}`,
      typeof value === 'string' ? join(folder, value) : value,
    ]);
    server = await startRedis(...words);
  });
  after(async () => {
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  const read = async (socket, url) => {
    const clientOptions = { socket: { host: '127.0.0.1', port, tls: true, ...socket } };
    const store = new ZLinkRedisLocationStore({ clientOptions, keyPrefix, operationTimeoutMs: 2_000, url });
    try {
      return (await store.read(key('a'))).kind;
    } catch (error) {
      return error.code;
    } finally {
      await store.dispose();
    }
  };

  test('with ca, servername, cert and key, as texts, buffers and lists', async () => {
    const own = { cert: file('client.crt'), key: file('client.key').toString() };
    assert.equal(await read({ ca: [file('ca.crt')], servername: 'localhost', ...own }), 'missing');
    assert.equal(await read({ ca: file('ca.crt').toString(), host: 'localhost', ...own }), 'missing');
    assert.equal(await read({ ca: file('ca.crt'), ...own }, `rediss://localhost:${port}`), 'missing');
  });

  test('without a client certificate, with another name, or without the CA it fails', async () => {
    const own = { cert: file('client.crt'), key: file('client.key') };
    for (const socket of [
      { ca: file('ca.crt'), servername: 'localhost' },
      { ca: file('ca.crt'), ...own, servername: 'other' },
      own,
    ]) {
      assert.match(await read(socket), /^ZLINK_STORE_(UNAVAILABLE|UNAUTHENTICATED|TIMEOUT)$/);
    }
    assert.equal(await read({ rejectUnauthorized: false, ...own }), 'missing', 'unless verification is switched off');
  });

  test('a url without TLS beside tls: true is an argument error: it is never left out silently', () => {
    const open = () =>
      new ZLinkRedisLocationStore({ url: 'redis://localhost', clientOptions: { socket: { tls: true } }, keyPrefix });
    assert.throws(open, { argument: 'clientOptions.socket.tls' });
  });
});

describe('options', () => {
  const client = redis6.createClient();
  const url = 'redis://localhost';
  const cases = [
    ['options', undefined],
    ['options', null],
    ['options', 5],
    ['url', { keyPrefix }],
    ['url', { keyPrefix, url: 5 }],
    ['url', { keyPrefix, url: '\udfff' }],
    ['client', { keyPrefix, client, url }],
    ['client', { keyPrefix, client, clientOptions: {} }],
    ['clientOptions', { keyPrefix, clientOptions: 5 }],
    ['clientOptions', { keyPrefix, clientOptions: null }],
    ['clientOptions.socket', { keyPrefix, clientOptions: { socket: 5 } }],
    ['keyPrefix', { url }],
    ['keyPrefix', { url, keyPrefix: '' }],
    ['keyPrefix', { url, keyPrefix: 5 }],
    ['keyPrefix', { url, keyPrefix: 'a{b' }],
    ['keyPrefix', { url, keyPrefix: 'é'.repeat(129) }],
    ['operationTimeoutMs', { url, keyPrefix, operationTimeoutMs: 0 }],
    ['operationTimeoutMs', { url, keyPrefix, operationTimeoutMs: 1.5 }],
    ['operationTimeoutMs', { url, keyPrefix, operationTimeoutMs: 2 ** 31 }],
    ['operationTimeoutMs', { url, keyPrefix, operationTimeoutMs: '5' }],
    ['uri', { url, keyPrefix, uri: url }],
  ];
  for (const Store of [ZLinkRedisLocationStore, ZLinkRedisRelocationStore]) {
    test(`that are wrong make the constructor throw an argument error (${Store.name})`, () => {
      for (const [argument, options] of cases) {
        assert.throws(
          () => new Store(options),
          (error) => {
            assert.ok(error instanceof TypeError || error instanceof RangeError, error.stack);
            assert.deepEqual([error.code, error.argument], ['ZLINK_STORE_INVALID_ARGUMENT', argument], error.message);
            assert.ok(error.message.startsWith(argument));
            return true;
          },
        );
      }
    });
  }

  test('no error of a wrong url shows the password', () => {
    for (const bad of [
      'redis://u:hidden@host:port',
      'redis://u:hidden@',
      'http://u:hidden@h',
      'redis://u:hidden@h/x',
      'redis://u:hid/den@h?a=b',
    ]) {
      const open = () => new ZLinkRedisLocationStore({ url: bad, keyPrefix });
      assert.throws(
        open,
        (error) => error.argument === 'url' && !/hid|den/.test(error.message + error.stack.split('\n')[0]),
      );
    }
  });

  test('of an embedded store', () => {
    for (const [argument, given] of [
      ['path', { path: '' }],
      ['path', { path: 5 }],
      ['keyPrefix', { keyPrefix: '}' }],
      ['url', { url }],
      ['options', 5],
    ]) {
      assert.throws(() => new ZLinkEmbeddedLocationStore(given), { code: 'ZLINK_STORE_INVALID_ARGUMENT', argument });
    }
  });
});
