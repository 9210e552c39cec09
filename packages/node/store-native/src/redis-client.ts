// A node-redis client that the user owns. It carries single commands and scripts; it is connected when it is not, and never
// closed; its options, its database and its transactions stay as they are.

import { Wrong } from './errors';

/** What a client must have. Clients of node-redis 5 and 6 do, whatever their modules, scripts and options. */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  readonly isPubSubActive: boolean;
  readonly options?: unknown;
  connect(): Promise<unknown>;
  sendCommand(args: readonly (string | Uint8Array)[], options?: object): Promise<unknown>;
  withTypeMapping(mapping: object): unknown;
  on(event: string, listener: (...args: never[]) => void): unknown;
  off(event: string, listener: (...args: never[]) => void): unknown;
}

export type End = { readonly reply: unknown } | { readonly failure: 'notSent' | 'lost'; readonly message: string };

/** The reply types of RESP by their first byte, and what node-redis shall make of each: nothing that loses a bit. */
const EXACT = {
  '+': Buffer,
  $: Buffer,
  '=': Buffer,
  ':': String,
  '(': String,
  ',': String,
  '%': Array,
  '~': Array,
};
const typeMapping = Object.fromEntries(Object.entries(EXACT).map(([sign, type]) => [sign.charCodeAt(0), type]));

const NEVER_SENT = new Set(['ClientClosedError', 'ClientOfflineError', 'AbortError']);
const NEVER_SENT_MESSAGES = new Set([
  'The client is closed',
  'The client is offline',
  'The command was aborted',
  'The queue is full',
]);

/** Without a listener an `error` event would end the process. */
const listening = () => {};

export class RedisClient {
  readonly #client: NodeRedisClient;
  #connecting: Promise<unknown> | undefined;
  /** Whether it has been open: if it is not any more, its owner has closed it, and it stays closed. */
  #opened = false;
  #listens = false;

  constructor(client: NodeRedisClient) {
    this.#client = client;
  }

  async send(args: readonly Uint8Array[], abortSignal: AbortSignal): Promise<End> {
    const client = this.#client;
    if (cannotSend(client)) {
      return {
        failure: 'notSent',
        message: 'the Redis client is in subscriber mode, in which RESP2 takes no commands',
      };
    }
    try {
      if (this.#connecting !== undefined || (!client.isOpen && !this.#opened)) await this.#connect();
      if (!client.isOpen) return { failure: 'notSent', message: 'the Redis client has been closed by its owner' };
      this.#opened = true;
    } catch (error) {
      return isReply(error) ? { reply: error } : { failure: 'notSent', message: messageOf(error) };
    }
    if (abortSignal.aborted) return { failure: 'notSent', message: 'nobody waits for the command any more' };
    try {
      // The store's own timeout counts, not the client's.
      const options = { typeMapping, abortSignal, timeout: undefined };
      return { reply: await client.sendCommand(args, options) };
    } catch (error) {
      if (isReply(error)) return { reply: error };
      return { failure: neverSent(error) ? 'notSent' : 'lost', message: messageOf(error) };
    }
  }

  /** The store is disposed. The client stays as it is. */
  leave(): void {
    if (this.#listens) this.#client.off('error', listening);
    this.#listens = false;
  }

  async #connect(): Promise<void> {
    if (!this.#listens) {
      this.#client.on('error', listening);
      this.#listens = true;
    }
    this.#connecting ??= this.#client.connect().finally(() => {
      this.#connecting = undefined;
    });
    await this.#connecting;
  }
}

/** Looks whether a store can work through `client`. */
export function redisClientOf(client: unknown): RedisClient {
  const candidate = client as Partial<NodeRedisClient>;
  const fits =
    typeof client === 'object' &&
    client !== null &&
    typeof candidate.isOpen === 'boolean' &&
    typeof candidate.isPubSubActive === 'boolean' &&
    typeof candidate.connect === 'function' &&
    typeof candidate.sendCommand === 'function' &&
    typeof candidate.withTypeMapping === 'function';
  if (!fits) {
    throw new Wrong(
      'type',
      'client',
      'must be what createClient of node-redis 5 or 6 gives (no cluster, Sentinel, pool or legacy client, and none of ' +
        'node-redis 4); clusters and Sentinels are reached by url',
    );
  }
  const fitting = candidate as NodeRedisClient;
  if (cannotSend(fitting)) {
    throw new Wrong('type', 'client', 'must not be in subscriber mode: in RESP2 it takes no commands then');
  }
  return new RedisClient(fitting);
}

function cannotSend(client: NodeRedisClient): boolean {
  return client.isPubSubActive && respOf(client) === 2;
}

function respOf(client: NodeRedisClient): number {
  const { RESP } = (client.options ?? {}) as { RESP?: number };
  // Left out, it is 2 in node-redis 5 and 3 in node-redis 6, which brought the key prefix.
  return RESP ?? ('_keyPrefix' in client ? 3 : 2);
}

/** Whether the server said this. */
function isReply(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  for (let type: unknown = error.constructor; typeof type === 'function'; type = Object.getPrototypeOf(type)) {
    if (type.name === 'ErrorReply') return true;
  }
  // A bundler may have renamed the class. Errors of sockets and TLS have a code; replies begin with one.
  return (error as { code?: unknown }).code === undefined && /^[A-Z][A-Z0-9_]+( |$)/.test(error.message);
}

function neverSent(error: unknown): boolean {
  return error instanceof Error && (NEVER_SENT.has(error.constructor.name) || NEVER_SENT_MESSAGES.has(error.message));
}

function messageOf(error: unknown): string {
  return `the Redis client says: ${error instanceof Error ? error.message : String(error)}`;
}
