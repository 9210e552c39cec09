// Stores whose calls go to two participants in turn: objects as the seed declares them for Node.js, over the wire (README.md).
import { pack, unpack } from './bytes.mjs';
import { project } from './project.mjs';

const date = (time) => new Date(time);
const text = (value) => ({ value });

/** Every store has a number of its own at each participant. */
let made = 0;

/** A place on one engine where stores are opened by all participants. */
export class SharedPlace {
  #engine;
  #address;
  #participants;
  #exclusive;
  #calls = 0;
  #invocations = 0;
  /** The participant that has the folder. */
  #holder;
  #opened = new Set();
  #turn = Promise.resolve();

  /** `participants` take turns in this order; where one at a time may have the data (`exclusive`), whoever is next waits for it. */
  constructor({ engine, address, inFront = '', exclusive = false }, participants) {
    this.inFront = inFront;
    this.#engine = engine;
    this.#address = address;
    this.#exclusive = exclusive;
    this.#participants = participants;
  }

  make(kind, options) {
    const opening = { store: ++made, kind, engine: this.#engine, address: this.#address, ...options };
    const store = { opening, at: new Map(), disposed: false };
    this.#opened.add(store);
    const ask = (request, signal, to) => this.#ask(store, { store: opening.store, ...request }, signal, to);
    const placed = { location, relocation, project: (asks) => project(asks, this) };
    return { ...placed[kind](ask), dispose: () => this.#dispose(store) };
  }

  /** The participant whose turn it is. */
  next() {
    return this.#participants[this.#calls++ % this.#participants.length];
  }

  /** The participants of an invocation: that which acquires, another that attaches. */
  invocation() {
    // Where one at a time has the data, nobody can stay.
    if (this.#exclusive) return { acquires: () => this.next(), attaches: () => this.next() };
    const [home, ...others] = this.#participants.slice(this.#invocations++ % this.#participants.length);
    const other = others[0] ?? this.#participants[0];
    return { acquires: () => home, attaches: () => other };
  }

  #ask(store, request, signal, to) {
    if (!this.#exclusive) return this.#send(store, request, signal, to);
    const answer = this.#turn.then(() => this.#send(store, request, signal, to));
    this.#turn = answer.catch(() => {});
    return answer;
  }

  async #send(store, request, signal, next = this.next()) {
    if (this.#exclusive && next !== this.#holder) {
      await this.#takeBack();
      this.#holder = next;
    }
    await this.#openAt(store, next);
    try {
      return await next.ask(signal?.aborted ? { ...request, cancelled: true } : request, signal);
    } catch (error) {
      throw error.code === 'ZLINK_STORE_CANCELLED' && signal?.aborted ? signal.reason : error;
    }
  }

  #openAt(store, participant) {
    if (!store.at.has(participant)) {
      const opened = participant.ask({ do: 'open', ...store.opening });
      // A store that is closed stays so at a participant that joins later.
      const done = store.disposed ? opened.then(() => this.#close(store, participant)) : opened;
      store.at.set(participant, done);
    }
    return store.at.get(participant);
  }

  #close(store, participant) {
    return participant.ask({ do: 'close', store: store.opening.store });
  }

  /** Closes everything at the participant that has the folder. */
  async #takeBack() {
    for (const store of this.#opened) {
      if (!store.at.has(this.#holder)) continue;
      await this.#close(store, this.#holder);
      store.at.delete(this.#holder);
    }
  }

  async #dispose(store) {
    store.disposed = true;
    await Promise.all([...store.at].map(([participant, opened]) => opened.then(() => this.#close(store, participant))));
  }
}

function location(ask) {
  return {
    async read(key, signal) {
      const { kind, value, storeNow } = await ask({ do: 'read', key: key.value }, signal);
      return kind === 'missing' ? { kind, storeNow: date(storeNow) } : { kind, value: stored(value) };
    },
    async write({ conditions, mutations }, signal) {
      const request = {
        do: 'write',
        conditions: conditions.map(({ kind, key, expected }) => ({ kind, key: key.value, expected: expected?.value })),
        mutations: mutations.map(({ kind, key, bytes, retentionMs }) => ({
          kind,
          key: key.value,
          bytes: bytes && pack(bytes),
          retentionMs,
        })),
      };
      const { kind, putVersions, storeNow } = await ask(request, signal);
      if (kind !== 'applied') return { kind, storeNow: date(storeNow) };
      const versions = putVersions.map(({ key, version }) => ({ key: text(key), version: text(version) }));
      return { kind, putVersions: versions, storeNow: date(storeNow) };
    },
    async scan({ prefix, cursor, limit }, signal) {
      const answer = await ask({ do: 'scan', prefix, cursor: cursor?.value, limit }, signal);
      if (answer.kind !== 'page') return { kind: answer.kind };
      const items = answer.items.map(({ key, value }) => ({ key: text(key), value: stored(value) }));
      const next = answer.nextCursor === undefined ? {} : { nextCursor: text(answer.nextCursor) };
      return { kind: 'page', value: { items, ...next, storeNow: date(answer.storeNow) } };
    },
  };
}

function stored({ bytes, version, expiresAt, storeNow }) {
  const expiry = expiresAt === undefined ? {} : { expiresAt: date(expiresAt) };
  return { bytes: unpack(bytes), version: text(version), ...expiry, storeNow: date(storeNow) };
}

function relocation(ask) {
  const blob = ({ kind, bytes, expiresAt, storeNow }) => ({
    kind,
    ...(bytes === undefined ? {} : { bytes: unpack(bytes) }),
    ...(expiresAt === undefined ? {} : { expiresAt: date(expiresAt) }),
    storeNow: date(storeNow),
  });
  return {
    async put({ value }, payload, retentionMs, signal) {
      return blob(await ask({ do: 'put', reference: value, bytes: pack(payload), retentionMs }, signal));
    },
    async read({ value }, signal) {
      return blob(await ask({ do: 'blobRead', reference: value }, signal));
    },
    async renew({ value }, retentionMs, signal) {
      return blob(await ask({ do: 'renew', reference: value, retentionMs }, signal));
    },
    async delete({ value }, signal) {
      await ask({ do: 'blobDelete', reference: value }, signal);
    },
  };
}
