// Finds and loads the native library. It comes as one package per platform, of which the package manager installs the one
// that fits; nothing is built or downloaded here.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The native side of one JavaScript environment: what bindings-node exports. */
export interface NativeBridge {
  open(settings: StoreSettings): OpenedStore | StoreFailure;
  openProject(settings: ProjectSettings): OpenedStore | StoreFailure;
  locks(project: number, withinMs?: number): OpenedStore | StoreFailure;
  forget(store: number): void;
  submit(batch: Uint8Array, length: number, payload?: Uint8Array): boolean;
  check(batch: Uint8Array, offset: number, length: number): StoreFailure | null;
  cancel(ticket: number): void;
  collect(target: Uint8Array): number;
  take(number: number): Uint8Array | null;
  segment(question: number, part?: Uint8Array): void;
  hold(hold: boolean): void;
  stats(store: number): Counters | null;
  log(level?: string): void;
}

export interface StoreFailure {
  readonly code: string;
  readonly outcome: string;
  readonly retryable: boolean;
  readonly argument?: string;
  readonly message: string;
}

export interface OpenedStore {
  readonly number: number;
  readonly inline: boolean;
}

export interface Counters {
  readonly operations: Record<string, number>;
  readonly errors: Record<string, number>;
  readonly latencyUsLog2: number[];
  readonly inFlight: number;
  readonly reconnects: number;
  readonly commandsSent: number;
}

export interface StoreSettings {
  relocation: boolean;
  /** Empty for memory of this store alone; a name for memory that stores of one process share. */
  memory?: string;
  path?: string;
  redis?: RedisSettings;
  client?: number;
  keyPrefix?: string;
  operationTimeoutMs?: number;
}

export interface ProjectSettings {
  url: string;
  workspace: string;
  project: string;
  operationTimeoutMs?: number;
}

export interface RedisSettings {
  url?: string;
  host?: string;
  port?: number;
  path?: string;
  username?: string;
  password?: string;
  database?: number;
  name?: string;
  connectTimeoutMs?: number;
  resp3?: boolean;
  tls?: TlsSettings;
}

export interface TlsSettings {
  ca?: string;
  cert?: string;
  key?: string;
  servername?: string;
  insecure: boolean;
}

export interface Limits {
  /** Largest value. */
  readonly value: number;
  /** Largest encoded write. */
  readonly write: number;
  /** Largest JSON text of a state entry. */
  readonly json: number;
}

export interface NativeLibrary {
  Bridge: {
    new (wake: () => void, external: boolean): NativeBridge;
    limits(): Limits;
  };
}

interface Platform {
  readonly name: string;
}

const FAMILY = '@zlink-systems/store-native';

/** What this machine's native library is called, such as `linux-x64-gnu`. */
export function platformName(): string {
  const { platform, arch } = process;
  if (platform === 'linux') return `linux-${arch}-${usesMusl() ? 'musl' : 'gnu'}`;
  return platform === 'win32' ? `win32-${arch}-msvc` : `${platform}-${arch}`;
}

function usesMusl(): boolean {
  const report = process.report;
  // Looking at the network interfaces' names takes long, and nobody asked for them.
  const excluded = report as unknown as { excludeNetwork?: boolean };
  const before = excluded.excludeNetwork;
  excluded.excludeNetwork = true;
  const { header } = report.getReport() as unknown as { header: { glibcVersionRuntime?: string } };
  if (before !== undefined) excluded.excludeNetwork = before;
  return header.glibcVersionRuntime === undefined;
}

export function loadLibrary(): NativeLibrary {
  const name = platformName();
  // A build of this checkout lies beside `dist`; it is never part of a published package.
  for (const place of [join(__dirname, '..', `zlink-store.${name}.node`), `${FAMILY}-${name}`]) {
    try {
      return require(place) as NativeLibrary;
    } catch (error) {
      if (!isMissing(error, place)) throw unloadable(name, error);
    }
  }
  throw absent(name);
}

function isMissing(error: unknown, place: string): boolean {
  const { code, message } = error as { code?: string; message?: string };
  return code === 'MODULE_NOT_FOUND' && (message ?? '').includes(place);
}

function absent(name: string): Error {
  const platforms = JSON.parse(readFileSync(join(__dirname, '..', 'platforms.json'), 'utf8')) as Platform[];
  const names = platforms.map((platform) => platform.name);
  const said = names.includes(name)
    ? `the package ${FAMILY}-${name} is not installed. Package managers leave it out with --no-optional or --omit=optional, ` +
      `and when the lock file was made on another platform: install without these, or add ${FAMILY}-${name} yourself.`
    : `there is no build for this platform. There is one for ${names.join(', ')}; ` +
      'for others, build the library from its source and put it there as a package of that name.';
  return new Error(`${FAMILY} cannot run on ${name}: ${said}`);
}

function unloadable(name: string, cause: unknown): Error {
  const said = cause instanceof Error ? cause.message : String(cause);
  return new Error(`${FAMILY} cannot load its native library for ${name}: ${said}`, { cause });
}
