// The packed form of requests and answers; core/src/packed/wire.rs is the other side and says what a record is.

import { Wrong } from './errors';

/** Bytes before a record's own fields. */
export const HEADER = 16;

/** What native code is asked for. */
export const enum Ask {
  Nothing = 0,
  Read = 1,
  Write = 2,
  Scan = 3,
  Put = 4,
  BlobRead = 5,
  Renew = 6,
  Delete = 7,
  Ping = 8,
  Close = 9,
  StateGet = 10,
  StateSet = 11,
  StateDelete = 12,
  LockAcquire = 13,
  LockAttach = 14,
  LockRenew = 15,
  LockRelease = 16,
  /** The reply of a user's Redis client to one command. */
  ClientReply = 0x100,
}

/** What native code tells. */
export const enum Tell {
  Missing = 1,
  Found = 2,
  FoundLarge = 3,
  Applied = 4,
  Conflict = 5,
  Page = 6,
  Expired = 7,
  Stored = 8,
  AlreadyStored = 9,
  Renewed = 10,
  Done = 11,
  Time = 12,
  Error = 13,
  Cancelled = 14,
  Segment = 15,
  Log = 16,
  Entry = 18,
  Absent = 19,
  VersionConflict = 20,
  LimitReached = 21,
  Lease = 22,
  Lost = 23,
  /** Asks a user's Redis client to send a command. */
  Command = 0x100,
  CommandDropped = 0x101,
  ClientDropped = 0x102,
}

/** Whether what is told is the answer to an operation. */
export function isAnswer(kind: Tell): boolean {
  return kind <= Tell.Cancelled || (kind >= Tell.Entry && kind <= Tell.Lost);
}

/** Whether what is asked for is of a project, whose errors have names of their own. */
export function isOfProject(kind: Ask): boolean {
  return kind >= Ask.StateGet && kind <= Ask.LockRelease;
}

/** Where the bytes of a value or payload are. */
export const enum Place {
  Here = 0,
  Beside = 1,
  /** A length stands for them: native code asks for a payload's parts, and refuses a value that is too large. */
  Elsewhere = 2,
}

/** A batch buffer starts with this size, and is given up for a fresh one when it has grown over `MOST`. */
const LEAST = 64 * 1024;
export const MOST = 1024 * 1024;

const plainLength = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), 'byteLength')?.get as (
  this: Uint8Array,
) => number;

/** The length that counts, whatever a subclass says. */
export function lengthOf(bytes: Uint8Array): number {
  return plainLength.call(bytes);
}

const plain = (name: 'byteOffset' | 'buffer') =>
  Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), name)?.get as (
    this: Uint8Array,
  ) => never;
const plainOffset: (this: Uint8Array) => number = plain('byteOffset');
const plainBuffer: (this: Uint8Array) => ArrayBufferLike = plain('buffer');

/** The memory that counts, whatever a subclass says. */
export function bufferOf(bytes: Uint8Array): ArrayBufferLike {
  return plainBuffer.call(bytes);
}

/** A part of the bytes that count, whatever a subclass says. */
export function partOf(bytes: Uint8Array, from: number, to: number): Uint8Array {
  return new Uint8Array(bufferOf(bytes), plainOffset.call(bytes) + from, to - from);
}

/** Requests being packed. */
export class Batch {
  bytes = Buffer.allocUnsafeSlow(LEAST);
  length = 0;
  #view = viewOf(this.bytes);

  /** Begins a record; the other half of its header is written by `end`. */
  begin(kind: number, subject: number): number {
    const start = this.length;
    this.#reserve(HEADER);
    this.#view.setUint32(start, kind, true);
    this.#view.setUint32(start + 8, subject, true);
    this.length = start + HEADER;
    return start;
  }

  end(start: number, ticket: number): void {
    const view = this.#view;
    view.setUint32(start + 4, ticket, true);
    view.setUint32(start + 12, this.length - start, true);
  }

  /** Turns a record into one that asks for nothing. */
  cancel(start: number): void {
    this.#view.setUint32(start, Ask.Nothing, true);
  }

  /** Empties the batch. */
  clear(): void {
    this.length = 0;
    if (this.bytes.length > MOST) {
      this.bytes = Buffer.allocUnsafeSlow(LEAST);
      this.#view = viewOf(this.bytes);
    }
  }

  byte(value: number): void {
    this.#reserve(1);
    this.bytes[this.length++] = value;
  }

  word(value: number): void {
    this.#reserve(4);
    this.#view.setUint32(this.length, value, true);
    this.length += 4;
  }

  number(value: number): void {
    this.#reserve(8);
    this.#view.setFloat64(this.length, value, true);
    this.length += 8;
  }

  /** A number that may be left out. */
  optional(value: number | undefined): void {
    this.byte(value === undefined ? 0 : 1);
    if (value !== undefined) this.number(value);
  }

  /** A text that must be valid Unicode. */
  text(value: string, argument: string): void {
    // Writing it would put a replacement character in its place.
    if (!value.isWellFormed()) throw new Wrong('range', argument, 'must be valid Unicode (no lone surrogate)');
    const start = this.length;
    this.#reserve(4 + value.length * 3);
    const written = this.bytes.write(value, start + 4);
    this.#view.setUint32(start, written, true);
    this.length = start + 4 + written;
  }

  data(value: Uint8Array): void {
    const length = lengthOf(value);
    this.#reserve(4 + length);
    this.#view.setUint32(this.length, length, true);
    this.bytes.set(value, this.length + 4);
    this.length += 4 + length;
  }

  #reserve(room: number): void {
    const needed = this.length + room;
    if (needed <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.bytes.length * 2));
    larger.set(this.bytes.subarray(0, this.length));
    this.bytes = larger;
    this.#view = viewOf(larger);
  }
}

/** Answers being unpacked. */
export class Answers {
  /** The plain array under `text`: its `slice` copies. */
  bytes = new Uint8Array(LEAST);
  text = Buffer.from(this.bytes.buffer);
  view = viewOf(this.bytes);

  /** Makes room for `length` bytes; what was there is gone. */
  resize(length: number): void {
    this.bytes = new Uint8Array(Math.max(length, LEAST));
    this.text = Buffer.from(this.bytes.buffer);
    this.view = viewOf(this.bytes);
  }

  /** Gives up memory that only a large answer needed. */
  shrink(): void {
    if (this.bytes.length > MOST) this.resize(0);
  }
}

/** Reads strings one after the other, beginning at `at`. */
export class Strings {
  constructor(
    readonly answers: Answers,
    public at: number,
  ) {}

  word(): number {
    const value = this.answers.view.getUint32(this.at, true);
    this.at += 4;
    return value;
  }

  number(): number {
    const value = this.answers.view.getFloat64(this.at, true);
    this.at += 8;
    return value;
  }

  text(): string {
    const length = this.word();
    const start = this.at;
    this.at += length;
    return this.answers.text.toString('utf8', start, this.at);
  }

  /** A copy with memory of its own. */
  copy(length = this.word()): Uint8Array {
    const start = this.at;
    this.at += length;
    return this.answers.bytes.slice(start, this.at);
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
