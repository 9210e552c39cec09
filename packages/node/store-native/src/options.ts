// Options of stores, and what native code is told of them.

import { numberOf, objectOf, stringOf } from './arguments';
import { Wrong } from './errors';
import type { RedisSettings, StoreSettings, TlsSettings } from './native';
import { type RedisClient, redisClientOf } from './redis-client';

/** A store to be opened, whichever kind. */
export interface Opening {
  settings: Omit<StoreSettings, 'relocation'>;
  client?: RedisClient;
}

export interface CommonOptions {
  readonly keyPrefix?: string;
  readonly operationTimeoutMs?: number;
}

export interface EmbeddedOptions extends CommonOptions {
  readonly path?: string;
}

/** The types of node-redis are the business of the package whose options they are. */
export interface RedisOptions extends CommonOptions {
  readonly url?: string;
  readonly client?: object;
  readonly clientOptions?: object;
}

const EMBEDDED = ['path', 'keyPrefix', 'operationTimeoutMs'];
const REDIS = ['url', 'client', 'clientOptions', 'keyPrefix', 'operationTimeoutMs'];

export function embeddedOpening(options: EmbeddedOptions | undefined): Opening {
  const given = objectOf(options ?? {}, 'options');
  refuseOthers(given, EMBEDDED, '', notOneOf(EMBEDDED));
  const { path } = given;
  if (path === undefined) return { settings: { ...common(given), memory: '' } };
  if (stringOf(path, 'path') === '')
    throw new Wrong('range', 'path', 'must not be empty (left out, the data lives in memory)');
  return { settings: { ...common(given), path: plain(path, 'path') } };
}

export function redisOpening(options: RedisOptions): Opening {
  const given = objectOf(options, 'options');
  refuseOthers(given, REDIS, '', notOneOf(REDIS));
  const { url, client, clientOptions } = given;
  const settings = common(given);
  if (settings.keyPrefix === undefined) throw new Wrong('type', 'keyPrefix', 'must be a string, got undefined');
  if (client !== undefined) {
    if (url !== undefined || clientOptions !== undefined) {
      throw new Wrong('type', 'client', 'must not stand beside url or clientOptions');
    }
    return { settings, client: redisClientOf(client) };
  }
  if (url === undefined && clientOptions === undefined) {
    throw new Wrong('type', 'url', 'must be given, or else client or clientOptions');
  }
  const redis = clientOptions === undefined ? {} : clientSettings(objectOf(clientOptions, 'clientOptions'));
  if (url !== undefined) redis.url = plain(stringOf(url, 'url'), 'url');
  return { settings: { ...settings, redis } };
}

function common(options: CommonOptions): Omit<StoreSettings, 'relocation'> {
  const { keyPrefix, operationTimeoutMs } = options;
  return {
    ...(keyPrefix === undefined ? {} : { keyPrefix: plain(stringOf(keyPrefix, 'keyPrefix'), 'keyPrefix') }),
    ...(operationTimeoutMs === undefined
      ? {}
      : { operationTimeoutMs: numberOf(operationTimeoutMs, 'operationTimeoutMs') }),
  };
}

/** Options of node-redis by the names that it has for them; the others cannot be honoured. */
const CLIENT = ['url', 'socket', 'username', 'password', 'database', 'name', 'RESP'];
const SOCKET = ['host', 'port', 'path', 'tls', 'connectTimeout', 'noDelay'];
const TLS = ['ca', 'cert', 'key', 'servername', 'rejectUnauthorized'];

function clientSettings(options: object): RedisSettings {
  const given = options as Record<string, unknown>;
  refuseOthers(given, CLIENT, 'clientOptions.', CANNOT);
  const text = (name: string) => optional(given, name, 'clientOptions.', stringOf);
  const { RESP } = given;
  if (RESP !== undefined && RESP !== 2 && RESP !== 3) throw new Wrong('range', 'clientOptions.RESP', 'must be 2 or 3');
  return {
    ...text('url'),
    ...text('username'),
    ...text('password'),
    ...text('name'),
    ...optional(given, 'database', 'clientOptions.', numberOf),
    ...(RESP === undefined ? {} : { resp3: RESP === 3 }),
    ...(given['socket'] === undefined
      ? {}
      : socketSettings(objectOf(given['socket'] as object, 'clientOptions.socket'))),
  };
}

function socketSettings(socket: object): RedisSettings {
  const given = socket as Record<string, unknown>;
  const at = 'clientOptions.socket.';
  const { tls, noDelay, connectTimeout } = given;
  refuseOthers(given, tls === true ? [...SOCKET, ...TLS] : SOCKET, at, CANNOT);
  if (tls !== undefined && typeof tls !== 'boolean') throw new Wrong('type', `${at}tls`, 'must be a boolean');
  if (noDelay !== undefined && noDelay !== true)
    throw new Wrong('range', `${at}noDelay`, `can only be true; ${USE_CLIENT}`);
  return {
    ...optional(given, 'host', at, stringOf),
    ...optional(given, 'port', at, numberOf),
    ...optional(given, 'path', at, stringOf),
    ...(connectTimeout === undefined ? {} : { connectTimeoutMs: numberOf(connectTimeout, `${at}connectTimeout`) }),
    ...(tls === true ? { tls: tlsSettings(given, at) } : {}),
  };
}

function tlsSettings(given: Record<string, unknown>, at: string): TlsSettings {
  const { rejectUnauthorized } = given;
  if (rejectUnauthorized !== undefined && typeof rejectUnauthorized !== 'boolean') {
    throw new Wrong('type', `${at}rejectUnauthorized`, 'must be a boolean');
  }
  return {
    ...optional(given, 'ca', at, pemOf),
    ...optional(given, 'cert', at, pemOf),
    ...optional(given, 'key', at, pemOf),
    ...optional(given, 'servername', at, stringOf),
    insecure: rejectUnauthorized === false,
  };
}

function notOneOf(options: readonly string[]): string {
  return `is not an option; there are ${options.join(', ')}`;
}

const USE_CLIENT = 'make a client with it and give that as client';
const CANNOT = `cannot be honoured by the native connection; ${USE_CLIENT}`;

function refuseOthers(options: object, known: readonly string[], at: string, problem: string): void {
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && !known.includes(name)) throw new Wrong('type', `${at}${name}`, problem);
  }
}

function optional<T extends string | number>(
  given: Record<string, unknown>,
  name: string,
  at: string,
  take: (value: unknown, argument: string) => T,
): Record<string, T> {
  if (given[name] === undefined) return {};
  const value = take(given[name], at + name);
  return { [name]: typeof value === 'string' ? (plain(value, at + name) as T) : value };
}

/** PEM texts as TLS options of Node.js have them: a string, a buffer, or a list of these. */
function pemOf(value: unknown, argument: string): string {
  if (Array.isArray(value)) return value.map((part) => pemOf(part, argument)).join('\n');
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
  if (typeof value === 'string') return value;
  throw new Wrong('type', argument, `must be PEM text: a string, a Buffer or a list of these; ${USE_CLIENT}`);
}

function plain(text: string, argument: string): string {
  if (text.isWellFormed()) return text;
  throw new Wrong('range', argument, 'must be valid Unicode (no lone surrogate)');
}
