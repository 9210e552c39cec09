// Answers as users see them.

import type {
  ZLinkBlobPutResult,
  ZLinkBlobReadResult,
  ZLinkBlobRenewResult,
  ZLinkStoreKey,
  ZLinkStorePutVersion,
  ZLinkStoreReadResult,
  ZLinkStoreScanCursor,
  ZLinkStoreScanItem,
  ZLinkStoreScanResult,
  ZLinkStoreValue,
  ZLinkStoreVersion,
  ZLinkStoreWriteResult,
} from '@zlink-systems/framework-provider-abstractions';
import type { NativeBridge } from './native';
import type { Operation } from './operation';
import type { StateEntry } from './project';
import { LockLostError, RateLimitError, StateConflictError } from './project-errors';
import { type Answers, Ask, Strings, Tell } from './wire';

/** Marks a value's length word: the value is to be taken by the number that follows. */
const KEPT = 0x8000_0000;

/** Ends an operation with the answer whose fields lie between `at` and `end`. */
export function settle(
  operation: Operation,
  answers: Answers,
  kind: Tell,
  extra: number,
  at: number,
  end: number,
  native: NativeBridge,
): void {
  switch (kind) {
    case Tell.Found:
    case Tell.FoundLarge:
      operation.resolve(found(operation.blob, answers, kind, extra, at, end, native));
      break;
    case Tell.Missing:
      operation.resolve({ kind: 'missing', storeNow: time(answers, at) } satisfies ZLinkStoreReadResult);
      break;
    case Tell.Applied:
      operation.resolve(applied(operation.keys ?? [], answers, extra, at));
      break;
    case Tell.Conflict:
      operation.resolve({ kind: 'conflict', storeNow: time(answers, at) } satisfies ZLinkStoreWriteResult);
      break;
    case Tell.Page:
      operation.resolve(page(answers, extra, at, native));
      break;
    case Tell.Expired:
      operation.resolve({ kind: 'expired' } satisfies ZLinkStoreScanResult);
      break;
    case Tell.Stored:
    case Tell.AlreadyStored:
      operation.resolve({
        kind: kind === Tell.Stored ? 'stored' : 'alreadyStored',
        expiresAt: time(answers, at + 8),
        storeNow: time(answers, at),
      } satisfies ZLinkBlobPutResult);
      break;
    case Tell.Entry:
      operation.resolve(entry(answers, at));
      break;
    case Tell.Absent:
      if (operation.kind === Ask.LockAttach) operation.refuse((raise) => new LockLostError(raise));
      else operation.resolve(operation.kind === Ask.StateDelete ? false : null);
      break;
    case Tell.VersionConflict:
      operation.refuse((raise) => new StateConflictError(operation.expected, raise));
      break;
    case Tell.LimitReached:
      operation.refuse((raise) => new RateLimitError(raise));
      break;
    case Tell.Lost:
      operation.refuse((raise) => new LockLostError(raise));
      break;
    case Tell.Renewed:
      if (operation.kind === Ask.LockRenew) {
        operation.resolve(answers.view.getFloat64(at, true));
        break;
      }
      operation.resolve({
        kind: 'renewed',
        expiresAt: time(answers, at + 8),
        storeNow: time(answers, at),
      } satisfies ZLinkBlobRenewResult);
      break;
    case Tell.Time:
      operation.resolve(time(answers, at));
      break;
    case Tell.Error: {
      const fields = new Strings(answers, at);
      operation.fail({
        outcome: extra & 1 ? 'unknown' : 'notApplied',
        retryable: (extra & 2) !== 0,
        code: fields.text(),
        argument: fields.text(),
        message: fields.text(),
      });
      break;
    }
    default:
      // Done; or cancelled, which the caller was told already.
      operation.resolve(operation.kind === Ask.StateDelete ? true : undefined);
  }
}

function time(answers: Answers, at: number): Date {
  return new Date(answers.view.getFloat64(at, true));
}

function found(
  blob: boolean,
  answers: Answers,
  kind: Tell,
  versionLength: number,
  at: number,
  end: number,
  native: NativeBridge,
): ZLinkStoreReadResult | ZLinkBlobReadResult {
  const versionAt = at + 16;
  const bytesAt = versionAt + versionLength;
  const bytes =
    kind === Tell.Found ? answers.bytes.slice(bytesAt, end) : take(native, answers.view.getUint32(bytesAt, true));
  if (blob) return { kind: 'found', bytes, expiresAt: time(answers, at + 8), storeNow: time(answers, at) };
  const version = answers.text.toString('latin1', versionAt, bytesAt);
  return {
    kind: 'found',
    value: storedValue(bytes, version, answers.view.getFloat64(at + 8, true), answers.view.getFloat64(at, true)),
  };
}

function storedValue(bytes: Uint8Array, version: string, expiresAt: number, storeNow: number): ZLinkStoreValue {
  // Not a number: there is no expiry.
  return !Number.isNaN(expiresAt)
    ? { bytes, version: versionOf(version), expiresAt: new Date(expiresAt), storeNow: new Date(storeNow) }
    : { bytes, version: versionOf(version), storeNow: new Date(storeNow) };
}

function take(native: NativeBridge, number: number): Uint8Array {
  return native.take(number) ?? new Uint8Array();
}

function applied(keys: readonly string[], answers: Answers, count: number, at: number): ZLinkStoreWriteResult {
  const fields = new Strings(answers, at);
  const storeNow = new Date(fields.number());
  const putVersions: ZLinkStorePutVersion[] = [];
  for (let index = 0; index < count; index++) {
    putVersions.push({ key: keyOf(keys[index] as string), version: versionOf(fields.text()) });
  }
  return { kind: 'applied', putVersions, storeNow };
}

function entry(answers: Answers, at: number): StateEntry<unknown> {
  const fields = new Strings(answers, at);
  const [version, createdAt, updatedAt, expiresAt] = [
    fields.number(),
    fields.number(),
    fields.number(),
    fields.number(),
  ];
  const value: unknown = JSON.parse(fields.text());
  // Not a number: there is no expiry.
  return Number.isNaN(expiresAt)
    ? { value, version, createdAt, updatedAt }
    : { value, version, expiresAt, createdAt, updatedAt };
}

function page(answers: Answers, count: number, at: number, native: NativeBridge): ZLinkStoreScanResult {
  const fields = new Strings(answers, at);
  const storeNow = fields.number();
  const cursor = fields.text();
  const items: ZLinkStoreScanItem[] = [];
  for (let left = count; left > 0; left--) {
    const expiresAt = fields.number();
    const key = keyOf(fields.text());
    const version = fields.text();
    const length = fields.word();
    const bytes = length === KEPT ? take(native, fields.word()) : fields.copy(length);
    items.push({ key, value: storedValue(bytes, version, expiresAt, storeNow) });
  }
  const nextCursor = cursor === '' ? {} : { nextCursor: { value: cursor } as ZLinkStoreScanCursor };
  return { kind: 'page', value: { items, ...nextCursor, storeNow: new Date(storeNow) } };
}

// The brands exist for the type checker alone.

function keyOf(value: string): ZLinkStoreKey {
  return { value } as ZLinkStoreKey;
}

function versionOf(value: string): ZLinkStoreVersion {
  return { value } as ZLinkStoreVersion;
}
