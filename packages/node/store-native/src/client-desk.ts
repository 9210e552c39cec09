// Commands of the core that go through Redis clients which users brought.

import type { RedisClient } from './redis-client';
import type { Batch } from './wire';

/** Packs the reply to one command. */
export type Reply = (command: number, pack: (batch: Batch) => void) => void;

export class ClientDesk {
  readonly #reply: Reply;
  readonly #clients = new Map<number, RedisClient>();
  readonly #sent = new Map<number, AbortController>();
  #next = 0;

  constructor(reply: Reply) {
    this.#reply = reply;
  }

  /** The number by which native code names the client from now on. */
  add(client: RedisClient): number {
    const number = this.#next++;
    this.#clients.set(number, client);
    return number;
  }

  remove(number: number): void {
    this.#clients.get(number)?.leave();
    this.#clients.delete(number);
  }

  send(number: number, command: number, args: Buffer[]): void {
    const client = this.#clients.get(number);
    if (client === undefined) {
      this.#reply(command, (batch) => packFailure(batch, 'notSent', 'the store has been disposed'));
      return;
    }
    const controller = new AbortController();
    this.#sent.set(command, controller);
    client.send(args, controller.signal).then((end) => {
      // Nobody waits for a command that was taken back.
      if (!this.#sent.delete(command)) return;
      this.#reply(command, (batch) => {
        if ('reply' in end) packReply(batch, end.reply);
        else packFailure(batch, end.failure, end.message);
      });
    });
  }

  /** Nobody waits for the command any more: what was not sent is not to be sent. */
  drop(command: number): void {
    const controller = this.#sent.get(command);
    this.#sent.delete(command);
    controller?.abort();
  }
}

const code = (character: string) => character.charCodeAt(0);
const [NIL, INTEGER, BYTES, ARRAY, ERROR, NOT_SENT, LOST] = ['_', ':', '$', '*', '-', 'n', 'l'].map(code) as [
  number,
  number,
  number,
  number,
  number,
  number,
  number,
];

function packFailure(batch: Batch, failure: 'notSent' | 'lost', message: string): void {
  batch.byte(failure === 'notSent' ? NOT_SENT : LOST);
  batch.text(message.toWellFormed(), 'message');
}

/** Packs a reply as `RedisClient` asks for it: strings as buffers, numbers as texts, maps and sets as arrays. */
function packReply(batch: Batch, reply: unknown): void {
  if (reply === null || reply === undefined) {
    batch.byte(NIL);
  } else if (reply instanceof Uint8Array) {
    batch.byte(BYTES);
    batch.data(reply);
  } else if (Array.isArray(reply)) {
    batch.byte(ARRAY);
    batch.word(reply.length);
    for (const item of reply) packReply(batch, item);
  } else if (reply instanceof Error) {
    batch.byte(ERROR);
    batch.text(reply.message.toWellFormed(), 'reply');
  } else {
    const text = typeof reply === 'boolean' ? (reply ? '1' : '0') : String(reply);
    if (/^-?\d{1,19}$/.test(text)) {
      batch.byte(INTEGER);
      batch.text(text, 'reply');
    } else {
      batch.byte(BYTES);
      batch.data(Buffer.from(text));
    }
  }
}
