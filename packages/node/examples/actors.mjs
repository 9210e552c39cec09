// Three nodes of an actor framework share one Location Store: they claim, move and list actors; one node dies and the others
// take over. Here everything runs on the embedded engine in a folder; on Redis only the two constructors change.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ZLinkEmbeddedLocationStore, ZLinkEmbeddedRelocationStore } from '@zlink-systems/framework-locations-embedded';

const LEASE_MS = 1_500;
const encode = (value) => new TextEncoder().encode(JSON.stringify(value));
const decode = (bytes) => JSON.parse(new TextDecoder().decode(bytes));
const key = (value) => ({ value });

/** One node of the framework: a lease that says it is alive, and the actors it owns. */
class Node {
  constructor(name, path) {
    this.name = name;
    this.locations = new ZLinkEmbeddedLocationStore({ path, keyPrefix: 'demo-locations' });
    this.payloads = new ZLinkEmbeddedRelocationStore({ path, keyPrefix: 'demo-payloads' });
  }

  /** Says "I am alive" for another LEASE_MS; on the engine's clock, not on ours. */
  async renew() {
    const lease = { kind: 'put', key: key(`node/${this.name}`), bytes: encode({}), retentionMs: LEASE_MS };
    const result = await this.locations.write({ conditions: [], mutations: [lease] });
    this.lease = result.putVersions[0].version;
  }

  start() {
    this.heart = setInterval(() => void this.renew(), LEASE_MS / 3);
    return this.renew();
  }

  /** Claims an actor that nobody owns. Of all nodes that try, exactly one gets it. */
  async claim(actor) {
    const result = await this.locations.write({
      conditions: [{ kind: 'missing', key: key(`actor/${actor}`) }],
      mutations: [{ kind: 'put', key: key(`actor/${actor}`), bytes: encode({ owner: this.name, generation: 1 }) }],
    });
    return result.kind === 'applied';
  }

  /** Reads who owns an actor, and under which version. */
  async locate(actor) {
    const result = await this.locations.read(key(`actor/${actor}`));
    return result.kind === 'found' ? { ...decode(result.value.bytes), version: result.value.version } : undefined;
  }

  /** Makes `owner` the owner, if the actor is still as it was seen. */
  async assign(actor, seen, owner) {
    const result = await this.locations.write({
      conditions: [{ kind: 'version', key: key(`actor/${actor}`), expected: seen.version }],
      mutations: [
        { kind: 'put', key: key(`actor/${actor}`), bytes: encode({ owner, generation: seen.generation + 1 }) },
      ],
    });
    return result.kind;
  }

  /** Every actor, from one snapshot, page by page. */
  async *actors() {
    let cursor;
    do {
      const result = await this.locations.scan({ prefix: 'actor/', cursor, limit: 4 });
      if (result.kind === 'expired') throw new Error('the snapshot is gone: start the scan again');
      for (const item of result.value.items) {
        yield {
          actor: item.key.value.slice('actor/'.length),
          ...decode(item.value.bytes),
          version: item.value.version,
        };
      }
      cursor = result.value.nextCursor;
    } while (cursor);
  }

  async isAlive(name) {
    return (await this.locations.read(key(`node/${name}`))).kind === 'found';
  }

  /** Stops without a word, as a crash does. */
  die() {
    clearInterval(this.heart);
  }

  async stop() {
    clearInterval(this.heart);
    await this.locations.dispose();
    await this.payloads.dispose();
  }
}

async function show(node) {
  for await (const { actor, owner, generation } of node.actors()) {
    console.log(`     ${actor.padEnd(8)} on ${owner.padEnd(6)} (generation ${generation})`);
  }
}

const folder = await mkdtemp(join(tmpdir(), 'zlink-demo-'));
const [red, green, blue] = ['red', 'green', 'blue'].map((name) => new Node(name, folder));
try {
  console.log('1. Three nodes start; each keeps a lease of', LEASE_MS, 'ms alive.');
  await Promise.all([red, green, blue].map((node) => node.start()));

  console.log('2. All three try to claim the same nine actors at once; each actor gets exactly one owner.');
  const actors = ['alice', 'bob', 'carol', 'dave', 'erin', 'frank', 'grace', 'heidi', 'ivan'];
  const claims = await Promise.all(
    actors.flatMap((actor, i) => [0, 1, 2].map((j) => [red, green, blue][(i + j) % 3].claim(actor))),
  );
  console.log(
    `   ${claims.length} claims, ${claims.filter(Boolean).length} granted. A snapshot scan in pages of 4 lists them:`,
  );
  await show(red);

  console.log('3. alice moves to green. Her state travels as a blob under a reference that red issues.');
  const seen = await red.locate('alice');
  const reference = { value: `alice/generation/${seen.generation + 1}` };
  const state = encode({ name: 'alice', inventory: Array.from({ length: 1_000 }, (_, i) => `item ${i}`) });
  const put = await red.payloads.put(reference, state, 60_000);
  console.log(
    `   put ${state.length} bytes: ${put.kind}; the same again: ${(await red.payloads.put(reference, state, 60_000)).kind}`,
  );
  console.log(`   the move, if alice is still as she was seen: ${await red.assign('alice', seen, 'green')}`);
  const arrived = await green.payloads.read(reference);
  console.log(`   green read ${decode(arrived.bytes).inventory.length} items and deletes the blob`);
  await green.payloads.delete(reference);
  console.log(`   a stale owner that still holds the old version: ${await red.assign('alice', seen, 'red')}`);

  console.log("4. blue dies without a word. Nobody compares clocks: its lease runs out on the engine's own.");
  blue.die();
  while (await red.isAlive('blue')) await pause(50);
  console.log('   the lease is gone.');

  console.log('5. red and green both scan for actors of dead nodes and take them over; conditions keep it exact.');
  const recovered = await Promise.all(
    [red, green].map(async (node) => {
      const taken = [];
      for await (const found of node.actors()) {
        if (await node.isAlive(found.owner)) continue;
        if ((await node.assign(found.actor, found, node.name)) === 'applied') taken.push(found.actor);
      }
      return `${node.name} took over ${taken.length ? taken.join(', ') : 'none (the other was faster)'}`;
    }),
  );
  for (const line of recovered) console.log(`   ${line}`);
  await show(green);
  console.log('Done. On Redis, replace ZLinkEmbedded…({ path, … }) by ZLinkRedis…({ url, … }); nothing else changes.');
} finally {
  await Promise.all([red, green, blue].map((node) => node.stop()));
  await rm(folder, { recursive: true, force: true });
}
