// The packed packages in an empty project: they run from CommonJS, ES modules and TypeScript, and their declarations compile.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { compilers, pack, project } from './support/installed.mjs';

const require = createRequire(import.meta.url);
const text = (path) => readFileSync(new URL(path, import.meta.url), 'utf8');
const bare = (declarations) =>
  declarations
    .replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\s*([{}()[\]<>:;,=|?])\s*/g, '$1')
    .replaceAll(/,\)/g, ')')
    .replaceAll(/=\|/g, '=')
    .trim();

test('the declarations are those of the contract', () => {
  assert.equal(bare(text('../framework-provider-abstractions/index.d.ts')), bare(text('./support/contract.txt')));
  const redis = bare(text('../framework-locations-redis/src/index.ts'));
  for (const declared of bare(text('./support/contract-redis.txt')).match(/export interface.*?\}/g)) {
    assert.ok(redis.includes(declared.replace(/;\}$/, ';}')), declared);
  }
});

test('all packages have one version', () => {
  const root = require('../package.json');
  const cargo = text('../../../Cargo.toml').match(/\[workspace\.package\]\nversion = "(.+)"/)[1];
  assert.equal(root.version, cargo);
  for (const name of root.workspaces) {
    const manifest = require(`../${name}/package.json`);
    assert.equal(manifest.version, cargo, name);
    for (const [dependency, version] of Object.entries(manifest.dependencies ?? {})) {
      assert.equal(version, cargo, `${name} needs ${dependency}`);
    }
  }
});

test('the lock file names no registry', () => {
  const { packages } = require('../package-lock.json');
  for (const [name, { resolved, link }] of Object.entries(packages)) assert.ok(link || !resolved, name);
});

describe('installed', () => {
  const packed = mkdtempSync(join(tmpdir(), 'zlink-packed-'));
  let files;
  let user;

  before(() => {
    files = pack(packed);
    user = project(files);
  });
  after(() => {
    user?.remove();
    rmSync(packed, { recursive: true });
  });

  const SCRIPT = `
    const store = new ZLinkEmbeddedLocationStore();
    const key = { value: 'a' };
    await store.write({ conditions: [], mutations: [{ kind: 'put', key, bytes: new Uint8Array([7]) }] });
    const { value } = await store.read(key);
    await store.dispose();
    const closed = await store.read(key).catch((error) => error);
    const project = new Project({ url: 'memory:', workspace: 'w', project: 'p' });
    const lease = await project.locks().acquire('k');
    await lease.release();
    const lost = await lease.renew().catch((error) => error);
    await project.dispose();
    console.log(value.bytes[0], closed instanceof ZLinkStoreError, closed.code, typeof ZLinkRedisLocationStore);
    console.log(lost instanceof LockLostError);`;
  const SAID = '7 true ZLINK_STORE_CLOSED function\ntrue\n';
  const NAMES = {
    '@zlink-systems/framework-locations-embedded': '{ ZLinkEmbeddedLocationStore }',
    '@zlink-systems/framework-locations-redis': '{ ZLinkRedisLocationStore }',
    '@zlink-systems/project-state': '{ LockLostError, Project }',
    '@zlink-systems/store-native': '{ ZLinkStoreError }',
  };

  test('from an ES module', () => {
    const imports = Object.entries(NAMES).map(([name, names]) => `import ${names} from '${name}';`);
    user.write('app.mjs', `${imports.join('\n')}${SCRIPT}`);
    assert.equal(user.run('app.mjs'), SAID);
  });

  test('from CommonJS', () => {
    const requires = Object.entries(NAMES).map(([name, names]) => `const ${names} = require('${name}');`);
    user.write('app.cjs', `${requires.join('\n')}(async () => {${SCRIPT}})();`);
    assert.equal(user.run('app.cjs'), SAID);
  });

  test('both module systems see the same classes', () => {
    user.write(
      'same.mjs',
      `import { createRequire } from 'node:module';
      const require = createRequire(import.meta.url);
      for (const name of ${JSON.stringify(Object.keys(NAMES))}) {
        const [imported, required] = [await import(name), require(name)];
        for (const key of Object.keys(required)) if (imported[key] !== required[key]) throw new Error(name + ' ' + key);
      }
      await import('@zlink-systems/framework-provider-abstractions');
      require('@zlink-systems/framework-provider-abstractions');`,
    );
    user.run('same.mjs');
  });

  test('the store packages export their stores and nothing else', () => {
    user.write(
      'exports.mjs',
      `for (const kind of ['redis', 'embedded']) {
        console.log(Object.keys(await import('@zlink-systems/framework-locations-' + kind)).sort().join());
      }`,
    );
    assert.deepEqual(user.run('exports.mjs').trim().split('\n'), [
      'ZLinkRedisLocationStore,ZLinkRedisRelocationStore',
      'ZLinkEmbeddedLocationStore,ZLinkEmbeddedRelocationStore',
    ]);
  });

  test('the manifest lists a package for each platform, of the same version', () => {
    const manifest = JSON.parse(
      readFileSync(join(user.folder, 'node_modules/@zlink-systems/store-native/package.json'), 'utf8'),
    );
    const platforms = require('../store-native/platforms.json');
    assert.deepEqual(
      manifest.optionalDependencies,
      Object.fromEntries(platforms.map(({ name }) => [`@zlink-systems/store-native-${name}`, manifest.version])),
    );
    const workflow = text('../../../.github/workflows/node-packages.yml');
    for (const { target } of platforms) assert.ok(workflow.includes(target), `${target} is built by the workflow`);
  });

  test('without the platform package, opening a store says what to do', () => {
    const rest = files.filter((file) => !/store-native-\w+-\w+-\w+-/.test(basename(file)));
    const without = project(rest);
    without.write(
      'app.mjs',
      `import { ZLinkEmbeddedLocationStore } from '@zlink-systems/framework-locations-embedded';
      try { new ZLinkEmbeddedLocationStore(); } catch (error) { console.log(error.message); }`,
    );
    const said = without.run('app.mjs');
    without.remove();
    assert.match(said, /cannot run on (\w+-\w+-\w+): the package @zlink-systems\/store-native-\1 is not installed/);
    assert.match(said, /--omit=optional/);
  });

  describe('TypeScript', () => {
    const USES = `
import type { ZLinkLocationStore, ZLinkRelocationStore, ZLinkStoreKey, ZLinkStoreWriteResult } from '@zlink-systems/framework-provider-abstractions';
import { ZLinkEmbeddedLocationStore, ZLinkEmbeddedRelocationStore, type ZLinkEmbeddedLocationOptions, type ZLinkEmbeddedRelocationOptions } from '@zlink-systems/framework-locations-embedded';
import { ZLinkRedisLocationStore, ZLinkRedisRelocationStore, type ZLinkRedisLocationOptions, type ZLinkRedisRelocationOptions } from '@zlink-systems/framework-locations-redis';
import { onLog, ping, stats, ZLinkStoreError, type ZLinkLogEvent, type ZLinkStoreErrorCode, type ZLinkStoreStats } from '@zlink-systems/store-native';

const embedded: ZLinkEmbeddedLocationOptions & ZLinkEmbeddedRelocationOptions = { path: 'x', keyPrefix: 'p', operationTimeoutMs: 1 };
const options: ZLinkRedisLocationOptions & ZLinkRedisRelocationOptions = {
  url: 'redis://localhost',
  keyPrefix: 'p',
  operationTimeoutMs: 5,
  clientOptions: { username: 'u', password: 'p', database: 1, name: 'n', socket: { host: 'h', port: 1, connectTimeout: 5 } },
};
export const stores: ZLinkLocationStore[] = [new ZLinkRedisLocationStore(options), new ZLinkEmbeddedLocationStore(embedded)];
export const blobs: ZLinkRelocationStore[] = [new ZLinkRedisRelocationStore(options), new ZLinkEmbeddedRelocationStore()];

export async function use(store: ZLinkRedisLocationStore, key: ZLinkStoreKey): Promise<ZLinkStoreWriteResult> {
  const read = await store.read(key, AbortSignal.timeout(5));
  if (read.kind === 'missing') return { kind: 'conflict', storeNow: read.storeNow };
  const bytes: Uint8Array = read.value.bytes;
  const expiresAt: Date | undefined = read.value.expiresAt;
  const gone: Promise<void> = store.dispose();
  await gone;
  await using again = store;
  void [expiresAt, again];
  const event: ZLinkLogEvent = { level: 'warn', target: 't', message: 'm' };
  const off: () => void = onLog((heard: ZLinkLogEvent) => void [heard, event]);
  off();
  const now: Date = await ping(store);
  const counted: ZLinkStoreStats = stats(store);
  void [now, counted.inFlight];
  const code = (error: unknown): ZLinkStoreErrorCode | undefined => (error instanceof ZLinkStoreError ? error.code : undefined);
  void code;
  return store.write({
    conditions: [{ kind: 'version', key, expected: read.value.version }],
    mutations: [{ kind: 'put', key, bytes, retentionMs: 1 }, { kind: 'delete', key: { value: 'x' } as ZLinkStoreKey }],
  });
}

// @ts-expect-error a key is a branded type
void stores[0]?.read({ value: 'x' });
// @ts-expect-error a version is no key
export const wrong = (store: ZLinkLocationStore, version: import('@zlink-systems/framework-provider-abstractions').ZLinkStoreVersion) => store.read(version);
// @ts-expect-error the key prefix is needed
export const noPrefix: ZLinkRedisLocationOptions = { url: 'redis://localhost' };
// @ts-expect-error no such option
export const unknown: ZLinkRedisLocationOptions = { keyPrefix: 'p', uri: 'redis://localhost' };
// @ts-expect-error no client
export const noClient: ZLinkRedisLocationOptions = { keyPrefix: 'p', client: 5 };
// @ts-expect-error no options of a client
export const noOptions: ZLinkRedisLocationOptions = { keyPrefix: 'p', clientOptions: { socket: 5 } };
`;
    // Whatever takes or gives the contract's types takes and gives ours.
    const PROJECT = `
import * as ours from '@zlink-systems/project-state';

${text('./support/contract-project.txt').replaceAll('\ninterface', '\nexport interface')}

const project = new ours.Project({ url: 'memory:', workspace: 'w', project: 'p', operationTimeoutMs: 5 });
export const state: ProjectState = project.state;
export const locks: DistributedLocks = project.locks({ deadline: new Date() });
export const namespace: StateNamespace = project.state.namespace('n');
export const entry = <T,>(theirs: StateEntry<T>): ours.StateEntry<T> => theirs;
export const back = <T,>(mine: ours.StateEntry<T>): StateEntry<T> => mine;
export const options = (write: StateWriteOptions, remove: StateDeleteOptions, lock: LockOptions) =>
  [write, remove, lock] satisfies [ours.StateWriteOptions, ours.StateDeleteOptions, ours.LockOptions];

export async function use(): Promise<number | undefined> {
  const { signal } = new AbortController();
  const current = await project.state.namespace('n').get<{ cursor: string }>('k', signal);
  const cursor: string | undefined = current?.value.cursor;
  const mine: ours.DistributedLocks = project.locks();
  const lease: ours.LockLease | null = await mine.acquire('k', { waitMs: 1 }, signal);
  const attached: LockLease = await mine.attach('id', signal);
  await lease?.renew(5_000, signal);
  await attached.release();
  const result: string = await mine.withLock('k', async () => 'text', signal);
  void [cursor, result, await mine.withLock('k', { leaseMs: 1 }, () => 7, signal)];
  const errors = [ours.StateConflictError, ours.RateLimitError, ours.LockLostError, ours.ValidationError, ours.LockUnavailableError];
  const argument = (error: unknown): string | undefined => (error instanceof ours.ValidationError ? error.argument : undefined);
  await using last = project;
  void [errors, argument, last];
  return current?.expiresAt;
}

// @ts-expect-error a workspace is needed
void new ours.Project({ url: 'memory:', project: 'p' });
// @ts-expect-error an entry cannot be changed
export const change = (mine: ours.StateEntry<number>) => { mine.value = 1; };
`;
    const CLIENTS = `
import { createClient, createCluster, type RedisClientOptions, type RedisClientType } from 'redis';
import { ZLinkRedisLocationStore, type ZLinkRedisLocationOptions } from '@zlink-systems/framework-locations-redis';

const own: RedisClientOptions = { socket: { host: 'h' } };
export const stores = [
  new ZLinkRedisLocationStore({ client: createClient(), keyPrefix: 'p' }),
  new ZLinkRedisLocationStore({ client: createClient({ RESP: 2 }), keyPrefix: 'p' }),
  new ZLinkRedisLocationStore({ client: createClient({ RESP: 3, url: 'x', modules: {} }), keyPrefix: 'p' }),
  new ZLinkRedisLocationStore({ clientOptions: own, keyPrefix: 'p' }),
];
export const declared = (client: RedisClientType): ZLinkRedisLocationOptions => ({ client, keyPrefix: 'p' });
// @ts-expect-error a cluster is reached by url
export const cluster: ZLinkRedisLocationOptions = { client: createCluster({ rootNodes: [] }), keyPrefix: 'p' };
`;
    const REDIS = { 'without redis': undefined, 'with redis 5': 'redis5', 'with redis 6': 'redis6' };

    before(() => {
      user.write('ts/types.cts', USES);
      user.write('ts/types.mts', USES);
      user.write('ts/project.cts', PROJECT);
      user.write('ts/project.mts', PROJECT);
      user.write('ts/clients.cts', CLIENTS);
      user.write('ts/clients.mts', CLIENTS);
    });

    for (const { version, path } of compilers) {
      for (const [how, redis] of Object.entries(REDIS)) {
        test(`${version}, strict, all libraries checked, ${how}`, () => {
          user.unlink('redis');
          user.unlink('@types/node');
          if (redis !== undefined) {
            user.link(redis, 'redis');
            user.link('@types/node');
          }
          const compilerOptions = {
            module: 'nodenext',
            target: 'es2022',
            // Without redis, and so without Node.js' own types: what the packages declare must not need them.
            lib: redis === undefined ? ['es2022', 'dom'] : ['es2022'],
            types: redis === undefined ? [] : ['node'],
            strict: true,
            exactOptionalPropertyTypes: true,
            skipLibCheck: false,
            noEmit: true,
          };
          const files = redis === undefined ? ['types', 'project'] : ['types', 'project', 'clients'];
          const include = files.flatMap((name) => [`${name}.cts`, `${name}.mts`]);
          user.write('ts/tsconfig.json', JSON.stringify({ compilerOptions, files: include }));
          try {
            user.run(path, '-p', 'ts');
          } catch (error) {
            assert.fail(error.stdout || error.message);
          }
        });
      }
    }

    test('the examples of the READMEs compile', () => {
      user.unlink('redis');
      user.link('@types/node');
      const examples = [];
      for (const name of require('../package.json').workspaces) {
        const blocks = [...text(`../${name}/README.md`).matchAll(/^```ts\n(.*?)^```$/gms)];
        assert.ok(blocks.length > 0, `${name} shows no example`);
        for (const [at, [, source]] of blocks.entries()) {
          examples.push(`${name}-${at}.mts`);
          user.write(`readme/${examples.at(-1)}`, source);
        }
      }
      const compilerOptions = {
        module: 'nodenext',
        target: 'es2022',
        types: ['node'],
        strict: true,
        exactOptionalPropertyTypes: true,
        noEmit: true,
      };
      user.write('readme/tsconfig.json', JSON.stringify({ compilerOptions, files: examples }));
      try {
        user.run(compilers[0].path, '-p', 'readme');
      } catch (error) {
        assert.fail(error.stdout || error.message);
      }
    });

    test('compiled, it runs', () => {
      user.write(
        'run/app.mts',
        `import { ZLinkEmbeddedLocationStore } from '@zlink-systems/framework-locations-embedded';
        import type { ZLinkStoreKey } from '@zlink-systems/framework-provider-abstractions';
        await using store = new ZLinkEmbeddedLocationStore();
        console.log((await store.read({ value: 'a' } as ZLinkStoreKey)).kind);`,
      );
      const compilerOptions = {
        module: 'nodenext',
        target: 'es2022',
        lib: ['es2022', 'dom', 'esnext.disposable'],
        types: [],
        strict: true,
      };
      user.write('run/tsconfig.json', JSON.stringify({ compilerOptions, files: ['app.mts'] }));
      user.run(compilers[0].path, '-p', 'run');
      assert.equal(user.run('run/app.mjs'), 'missing\n');
    });
  });
});
