/// <reference lib="esnext.disposable" preserve="true" />

import { types } from 'node:util';
import type {
  ZLinkBlobPutResult,
  ZLinkBlobReadResult,
  ZLinkBlobReference,
  ZLinkBlobRenewResult,
  ZLinkRelocationStore,
} from '@zlink-systems/framework-provider-abstractions';
import { bytesOf, numberOf, textOf } from './arguments';
import type { Details } from './bridge';
import { Handle, openStore } from './handle';
import { withKind } from './location';
import type { Opening } from './options';
import { Ask, type Batch, bufferOf, lengthOf, Place } from './wire';

/** Larger payloads are not copied as a whole. */
const COPIED = 1024 * 1024;

/** A Relocation Store on whatever engine its options name. */
export class NativeRelocationStore implements ZLinkRelocationStore {
  readonly #handle: Handle;

  constructor(opening: () => Opening) {
    this.#handle = new Handle(this, () => openStore(withKind(opening(), true)));
  }

  put(
    reference: ZLinkBlobReference,
    payload: Uint8Array,
    retentionMs: number,
    signal?: AbortSignal,
  ): Promise<ZLinkBlobPutResult> {
    return this.#handle.ask(Ask.Put, signal, (batch) => {
      batch.text(textOf(reference, 'reference'), 'reference');
      const bytes = bytesOf(payload, 'payload');
      batch.number(numberOf(retentionMs, 'retentionMs'));
      return packPayload(batch, bytes, this.#handle.inline);
    });
  }

  read(reference: ZLinkBlobReference, signal?: AbortSignal): Promise<ZLinkBlobReadResult> {
    return this.#handle.ask(Ask.BlobRead, signal, (batch) => {
      batch.text(textOf(reference, 'reference'), 'reference');
      return { blob: true };
    });
  }

  renew(reference: ZLinkBlobReference, retentionMs: number, signal?: AbortSignal): Promise<ZLinkBlobRenewResult> {
    return this.#handle.ask(Ask.Renew, signal, (batch) => {
      batch.text(textOf(reference, 'reference'), 'reference');
      batch.number(numberOf(retentionMs, 'retentionMs'));
      return undefined;
    });
  }

  delete(reference: ZLinkBlobReference, signal?: AbortSignal): Promise<void> {
    return this.#handle.ask(Ask.Delete, signal, (batch) => {
      batch.text(textOf(reference, 'reference'), 'reference');
      return undefined;
    });
  }

  /** Waits for operations under way, at most for the operation timeout, and lets no new ones in. */
  dispose(): Promise<void> {
    return this.#handle.dispose();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}

function packPayload(batch: Batch, payload: Uint8Array, inline: boolean): Details | undefined {
  const length = lengthOf(payload);
  if (length <= COPIED) {
    batch.byte(Place.Here);
    batch.data(payload);
    return undefined;
  }
  // Shared memory is nobody's alone, and native code does not take it: it is copied now.
  const own = types.isSharedArrayBuffer(bufferOf(payload)) ? new Uint8Array(payload) : payload;
  if (inline) {
    batch.byte(Place.Beside);
    return { beside: own };
  }
  batch.byte(Place.Elsewhere);
  batch.word(Math.min(length, 0xffff_ffff));
  return { payload: own };
}
