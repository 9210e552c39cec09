// Work on a Location Store and a Relocation Store, and a checker that knows every result that was acknowledged.
//
// A chain is two keys that one writer moves on together, each commit on condition of the versions that the one before gave
// them. A link that failed with an unknown outcome may or may not be there, and may still arrive while its versions stand;
// everything else is exact.
import assert from 'node:assert/strict';

const LONGEST_MS = 30_000;
const bytesOf = (text) => new TextEncoder().encode(text);
const textOf = (bytes) => new TextDecoder().decode(bytes);

export class Work {
  /** How many links, blobs and readings were answered. */
  counts = { links: 0, blobs: 0, reads: 0, scans: 0, unknown: 0, notApplied: 0, adopted: 0 };
  /** Codes of errors that are no fault here. */
  #allowed = new Set(['ZLINK_STORE_UNAVAILABLE', 'ZLINK_STORE_TIMEOUT']);
  #versions = new Set();
  #over = false;
  #loops = [];
  #chains;
  #blobs = [];

  constructor(locations, relocations, chains) {
    this.locations = locations;
    this.relocations = relocations;
    this.#chains = Array.from({ length: chains }, (_, number) => new Chain(number));
  }

  start() {
    for (const chain of this.#chains) {
      this.#loop(() => this.#link(chain));
      this.#loop(() => this.#look(chain));
    }
    this.#loop(() => this.#scan());
    for (let lane = 0; lane < 2; lane++) this.#loop((round) => this.#blob(`${lane}/${round}`));
  }

  /** Resolves when every chain has got `links` more links since now; rejects if the work fails before. */
  async progress(links = 3) {
    const before = this.#chains.map((chain) => chain.acknowledged);
    const blobs = this.#blobs.length;
    const arrived = () =>
      this.#blobs.length > blobs && this.#chains.every((chain, i) => chain.acknowledged >= before[i] + links);
    const waiting = (async () => {
      while (!arrived()) await new Promise((resolve) => setTimeout(resolve, 5));
    })();
    await settled(Promise.race([waiting, Promise.all(this.#loops)]), 'progress');
    assert.ok(arrived(), 'the work ended');
  }

  async stop() {
    this.#over = true;
    await Promise.all(this.#loops);
  }

  /** Compares what is there with what must be. */
  async check(locations = this.locations, relocations = this.relocations) {
    for (const chain of this.#chains) await this.#resolve(chain, locations);
    for (const { reference, bytes } of this.#blobs) {
      const found = await relocations.read(reference);
      assert.equal(found.kind, 'found', `${reference.value} was acknowledged`);
      assert.ok(Buffer.from(found.bytes).equals(bytes), `${reference.value} is whole`);
    }
  }

  #loop(work) {
    const loop = (async () => {
      for (let round = 0; !this.#over; round++) await work(round);
    })();
    loop.catch(() => {});
    this.#loops.push(loop);
  }

  /** What an operation gives; undefined if it failed in a way that is allowed, with its outcome told to `failed`. */
  async #try(what, operation, failed = () => {}) {
    try {
      return await settled(operation, what);
    } catch (error) {
      if (!this.#allowed.has(error.code)) throw error;
      assert.ok(['unknown', 'notApplied'].includes(error.outcome), `${what}: ${error.outcome}`);
      this.counts[error.outcome]++;
      failed(error.outcome);
      return undefined;
    }
  }

  async #link(chain) {
    const id = `${chain.number}:${++chain.begun}`;
    const from = chain.versions;
    const write = this.locations.write({
      conditions: chain.keys.map((key, i) =>
        from === undefined ? { kind: 'missing', key } : { kind: 'version', key, expected: from[i] },
      ),
      mutations: chain.keys.map((key) => ({ kind: 'put', key, bytes: bytesOf(id) })),
    });
    const result = await this.#try(`link ${id}`, write, (outcome) => {
      if (outcome === 'unknown') chain.pending.add(id);
    });
    if (result?.kind === 'applied') {
      assert.deepEqual(
        result.putVersions.map(({ key }) => key),
        chain.keys,
      );
      const versions = result.putVersions.map(({ version }) => version);
      this.#issued(versions);
      chain.applied(id, versions);
      this.counts.links++;
    } else {
      // A conflict is right only if a link came to be that nobody was told of.
      const moved = await this.#resolve(chain);
      assert.ok(result === undefined || moved, `link ${id} is a conflict, and the chain is where it was`);
    }
  }

  /** Reads where a chain stands; whether it is at a link whose outcome was unknown. */
  async #resolve(chain, locations = this.locations) {
    for (;;) {
      const read = locations.scan({ prefix: chain.prefix, limit: 9 });
      const result = await this.#try(`scan of chain ${chain.number}`, read, (outcome) => {
        assert.equal(outcome, 'notApplied', 'a scan changes nothing');
      });
      if (result === undefined) continue;
      const seen = chain.seen(result);
      if (seen === undefined || seen.id === chain.last) {
        assert.deepEqual(seen?.versions, chain.versions, `chain ${chain.number} has the versions that were told`);
        return false;
      }
      assert.ok(chain.pending.has(seen.id), `chain ${chain.number} is at ${seen.id}, and was left at ${chain.last}`);
      this.#issued(seen.versions);
      chain.applied(seen.id, seen.versions);
      this.counts.adopted++;
      return true;
    }
  }

  #issued(versions) {
    for (const { value } of versions) {
      assert.ok(!this.#versions.has(value), `the version ${value} was issued twice`);
      this.#versions.add(value);
    }
  }

  /** A read sees nothing older than what was acknowledged when it began. */
  async #look(chain) {
    const least = chain.position;
    const result = await this.#try(`read of chain ${chain.number}`, this.locations.read(chain.keys[0]));
    if (result === undefined) return;
    const at = result.kind === 'missing' ? 0 : positionOf(textOf(result.value.bytes));
    assert.ok(at >= least && at <= chain.begun, `chain ${chain.number} was at ${least}, read at ${at}`);
    this.counts.reads++;
  }

  /** A scan sees both keys of every chain at the same link. */
  async #scan() {
    const least = this.#chains.map((chain) => chain.position);
    const result = await this.#try('scan', this.locations.scan({ prefix: '', limit: 1_000 }));
    if (result === undefined) return;
    for (const chain of this.#chains) {
      const at = positionOf(chain.seen(result)?.id);
      assert.ok(at >= least[chain.number] && at <= chain.begun, `chain ${chain.number} is at ${at} in a scan`);
    }
    this.counts.scans++;
  }

  async #blob(name) {
    const reference = { value: name };
    const bytes = Buffer.alloc(1 + ((name.length * 77_777) % 700_000), `${name};`);
    const stored = await this.#try(`put of ${name}`, this.relocations.put(reference, bytes, 600_000));
    if (stored === undefined) {
      // Put again, it is there once, whatever became of the first.
      const read = await this.#try(`read of ${name}`, this.relocations.read(reference));
      assert.ok(read?.kind !== 'found' || Buffer.from(read.bytes).equals(bytes), `${name} is whole or not there`);
      return;
    }
    assert.equal(stored.kind, 'stored');
    this.#blobs.push({ reference, bytes });
    this.counts.blobs++;
  }
}

class Chain {
  /** The last link that is known to be there, and its versions. */
  last;
  versions;
  /** Links from `versions` on whose outcome is unknown. */
  pending = new Set();
  begun = 0;
  acknowledged = 0;

  constructor(number) {
    this.number = number;
    this.prefix = `chain/${number}/`;
    this.keys = ['a', 'b'].map((name) => ({ value: this.prefix + name }));
  }

  get position() {
    return positionOf(this.last);
  }

  applied(id, versions) {
    this.last = id;
    this.versions = versions;
    // Those from the versions before can no longer come to be.
    this.pending.clear();
    this.acknowledged++;
  }

  /** Where a page shows the chain. */
  seen({ kind, value }) {
    assert.equal(kind, 'page');
    const items = value.items.filter(({ key }) => key.value.startsWith(this.prefix));
    if (items.length === 0) return undefined;
    const ids = items.map((item) => textOf(item.value.bytes));
    assert.equal(ids.length, 2, `half of link ${ids[0]} is there`);
    assert.equal(ids[0], ids[1], 'both keys are at the same link');
    return { id: ids[0], versions: items.map((item) => item.value.version) };
  }
}

const positionOf = (id) => (id === undefined ? 0 : Number(id.split(':')[1]));

/** Nothing hangs: an operation ends long before this. */
function settled(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} has not ended within ${LONGEST_MS} ms`)), LONGEST_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
