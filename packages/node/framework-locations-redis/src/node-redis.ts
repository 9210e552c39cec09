// The types of node-redis, an optional peer dependency: where it is not installed, what a store needs of them.

/** What stands for a type that cannot be resolved, which is `any`. */
type Or<T, Instead> = 0 extends 1 & T ? Instead : T;

/** @ts-ignore: `redis` need not be installed */
type InstalledClient = import('redis').RedisClientType<any, any, any, any, any>;

/** @ts-ignore: `redis` need not be installed */
type InstalledOptions = import('redis').RedisClientOptions<any, any, any, any, any>;

interface ClientShape {
  readonly isOpen: boolean;
  readonly isPubSubActive: boolean;
  connect(): Promise<unknown>;
  sendCommand(args: never, options?: never): Promise<unknown>;
}

interface OptionsShape {
  readonly url?: string;
  readonly socket?: object;
  readonly username?: string;
  readonly password?: string;
  readonly name?: string;
  readonly database?: number;
  readonly RESP?: 2 | 3;
}

export type RedisClientType = Or<InstalledClient, ClientShape>;

export type RedisClientOptions = Or<InstalledOptions, OptionsShape>;
