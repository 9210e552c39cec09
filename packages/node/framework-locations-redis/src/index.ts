import { NativeLocationStore, NativeRelocationStore, redisOpening } from '@zlink-systems/store-native/internal';
import type { RedisClientOptions, RedisClientType } from './node-redis';

export interface ZLinkRedisLocationOptions {
  /** `redis://`, `rediss://`, `valkey://`, `valkeys://` with user, password, host, port and database, or `redis+unix://` and a path. */
  readonly url?: string;
  /** A client of node-redis 5 or 6 that carries all commands of the store. It is connected if it is not, and never closed. */
  readonly client?: RedisClientType;
  /** Options of node-redis for a connection of the store's own; a `url` beside them gives the address. */
  readonly clientOptions?: RedisClientOptions;
  /** The store's name space: 1..256 bytes of UTF-8, without braces. */
  readonly keyPrefix: string;
  /** 5,000 if left out. */
  readonly operationTimeoutMs?: number;
}

export interface ZLinkRedisRelocationOptions {
  /** `redis://`, `rediss://`, `valkey://`, `valkeys://` with user, password, host, port and database, or `redis+unix://` and a path. */
  readonly url?: string;
  /** A client of node-redis 5 or 6 that carries all commands of the store. It is connected if it is not, and never closed. */
  readonly client?: RedisClientType;
  /** Options of node-redis for a connection of the store's own; a `url` beside them gives the address. */
  readonly clientOptions?: RedisClientOptions;
  /** The store's name space: 1..256 bytes of UTF-8, without braces. */
  readonly keyPrefix: string;
  /** 5,000 if left out. */
  readonly operationTimeoutMs?: number;
}

/** A Location Store on Redis or Valkey. */
export class ZLinkRedisLocationStore extends NativeLocationStore {
  constructor(options: ZLinkRedisLocationOptions) {
    super(() => redisOpening(options));
  }
}

/** A Relocation Store on Redis or Valkey. */
export class ZLinkRedisRelocationStore extends NativeRelocationStore {
  constructor(options: ZLinkRedisRelocationOptions) {
    super(() => redisOpening(options));
  }
}
