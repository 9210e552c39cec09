/// <reference lib="esnext.disposable" preserve="true" />

import type {
  ZLinkLocationStore,
  ZLinkStoreCondition,
  ZLinkStoreKey,
  ZLinkStoreMutation,
  ZLinkStoreReadResult,
  ZLinkStoreScanRequest,
  ZLinkStoreScanResult,
  ZLinkStoreWriteRequest,
  ZLinkStoreWriteResult,
} from '@zlink-systems/framework-provider-abstractions';
import { bytesOf, countOf, numberOf, objectOf, stringOf, textOf } from './arguments';
import type { Details } from './bridge';
import { Wrong } from './errors';
import { Handle, openStore } from './handle';
import type { Limits } from './native';
import type { Opening } from './options';
import { Ask, type Batch, lengthOf, Place } from './wire';

/** A Location Store on whatever engine its options name. */
export class NativeLocationStore implements ZLinkLocationStore {
  readonly #handle: Handle;

  constructor(opening: () => Opening) {
    this.#handle = new Handle(this, () => openStore(withKind(opening(), false)));
  }

  read(key: ZLinkStoreKey, signal?: AbortSignal): Promise<ZLinkStoreReadResult> {
    return this.#handle.ask(Ask.Read, signal, (batch) => {
      batch.text(textOf(key, 'key'), 'key');
      return undefined;
    });
  }

  write(request: ZLinkStoreWriteRequest, signal?: AbortSignal): Promise<ZLinkStoreWriteResult> {
    return this.#handle.ask(Ask.Write, signal, (batch) => packWrite(batch, request, this.#handle.limits));
  }

  scan(request: ZLinkStoreScanRequest, signal?: AbortSignal): Promise<ZLinkStoreScanResult> {
    return this.#handle.ask(Ask.Scan, signal, (batch) => {
      const { prefix, limit, cursor } = objectOf(request, 'request');
      batch.text(stringOf(prefix, 'prefix'), 'prefix');
      batch.number(numberOf(limit, 'limit'));
      batch.byte(cursor === undefined ? 0 : 1);
      if (cursor !== undefined) batch.text(textOf(cursor, 'cursor'), 'cursor');
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

export function withKind(opening: Opening, relocation: boolean) {
  return { ...opening, settings: { ...opening.settings, relocation } };
}

function packWrite(batch: Batch, request: ZLinkStoreWriteRequest, limits: Limits): Details {
  const { conditions, mutations } = objectOf(request, 'request');
  const [checks, changes] = [countOf(conditions, 'conditions'), countOf(mutations, 'mutations')];
  batch.word(checks);
  batch.word(changes);
  for (let index = 0; index < checks; index++) {
    within('conditions', index, () => packCondition(batch, conditions[index] as ZLinkStoreCondition));
  }
  const room = { left: limits.write, most: limits.value };
  const keys: string[] = [];
  for (let index = 0; index < changes; index++) {
    within('mutations', index, () => packMutation(batch, mutations[index] as ZLinkStoreMutation, room, keys));
  }
  return { keys };
}

function within(list: string, index: number, pack: () => void): void {
  try {
    pack();
  } catch (problem) {
    throw problem instanceof Wrong ? problem.inside(`${list}[${index}]`) : problem;
  }
}

// Each property is read once: what is packed is what was checked, whatever stands behind it.

function packCondition(batch: Batch, condition: ZLinkStoreCondition): void {
  const { kind, key, expected } = objectOf<Partial<Record<'kind' | 'key' | 'expected', unknown>>>(
    condition,
    'condition',
  );
  if (kind !== 'missing' && kind !== 'version') throw new Wrong('type', 'kind', "must be 'missing' or 'version'");
  batch.byte(kind === 'version' ? 1 : 0);
  batch.text(textOf(key, 'key'), 'key');
  if (kind === 'version') batch.text(textOf(expected, 'expected'), 'expected');
}

/** Bytes that values may still have, together and each. */
interface Room {
  left: number;
  readonly most: number;
}

/** What a mutation is, as bits. */
const enum Kind {
  Put = 1,
  Retention = 2,
}

function packMutation(batch: Batch, mutation: ZLinkStoreMutation, room: Room, keys: string[]): void {
  type Fields = Partial<Record<'kind' | 'key' | 'bytes' | 'retentionMs', unknown>>;
  const { kind, key, bytes, retentionMs } = objectOf<Fields>(mutation, 'mutation');
  if (kind !== 'put' && kind !== 'delete') throw new Wrong('type', 'kind', "must be 'put' or 'delete'");
  const name = textOf(key, 'key');
  if (kind === 'delete') {
    batch.byte(0);
    batch.text(name, 'key');
    return;
  }
  keys.push(name);
  const value = bytesOf(bytes, 'bytes');
  const length = lengthOf(value);
  room.left -= length;
  batch.byte(retentionMs === undefined ? Kind.Put : Kind.Put | Kind.Retention);
  batch.text(name, 'key');
  if (retentionMs !== undefined) batch.number(numberOf(retentionMs, 'retentionMs'));
  // What is too large for the contract anyway is not copied: its length is enough for the core to refuse it.
  if (length > room.most || room.left < 0) {
    batch.byte(Place.Elsewhere);
    batch.word(Math.min(length, 0xffff_ffff));
  } else {
    batch.byte(Place.Here);
    batch.data(value);
  }
}
