// The types of node-redis, an optional peer dependency: where it is not installed, what a store needs of them.

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

// A type that cannot be resolved is one to which even `unknown` can be assigned.

export type RedisClientType = [unknown] extends [InstalledClient] ? ClientShape : InstalledClient;

export type RedisClientOptions = [unknown] extends [InstalledOptions] ? OptionsShape : InstalledOptions;
