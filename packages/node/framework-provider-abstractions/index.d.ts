// What a Location Store and a Relocation Store are to a framework. Everything here is a type; there is no code.

// ---- Location Store -------------------------------------------------------------------------------------------------

declare const zlinkStoreKeyBrand: unique symbol;
declare const zlinkStoreVersionBrand: unique symbol;
declare const zlinkStoreScanCursorBrand: unique symbol;

/** A key that the framework issues: opaque UTF-8, 1..1,024 bytes, compared byte by byte. */
export interface ZLinkStoreKey {
  readonly value: string;
  readonly [zlinkStoreKeyBrand]: true;
}

/** A version that the provider issues: opaque UTF-8, 1..4,096 bytes. */
export interface ZLinkStoreVersion {
  readonly value: string;
  readonly [zlinkStoreVersionBrand]: true;
}

/** Where a scan goes on; issued by the provider: opaque UTF-8, 1..4,096 bytes. */
export interface ZLinkStoreScanCursor {
  readonly value: string;
  readonly [zlinkStoreScanCursorBrand]: true;
}

/** A live record as one observation saw it. */
export interface ZLinkStoreValue {
  readonly bytes: Uint8Array;
  readonly version: ZLinkStoreVersion;
  /** Absent when the record does not expire. */
  readonly expiresAt?: Date;
  /** The provider's clock at the observation. */
  readonly storeNow: Date;
}

export type ZLinkStoreReadResult =
  | { readonly kind: 'missing'; readonly storeNow: Date }
  | { readonly kind: 'found'; readonly value: ZLinkStoreValue };

export type ZLinkStoreCondition =
  | { readonly kind: 'missing'; readonly key: ZLinkStoreKey }
  | {
      readonly kind: 'version';
      readonly key: ZLinkStoreKey;
      readonly expected: ZLinkStoreVersion;
    };

export type ZLinkStoreMutation =
  | {
      readonly kind: 'put';
      readonly key: ZLinkStoreKey;
      /** At most 1 MiB. */
      readonly bytes: Uint8Array;
      /** A positive safe integer; without it the record does not expire. */
      readonly retentionMs?: number;
    }
  | { readonly kind: 'delete'; readonly key: ZLinkStoreKey };

/** At most 2,048 unique keys and 4 MiB (keys, expected versions and values); a key at most once in each list. */
export interface ZLinkStoreWriteRequest {
  readonly conditions: readonly ZLinkStoreCondition[];
  readonly mutations: readonly ZLinkStoreMutation[];
}

export interface ZLinkStorePutVersion {
  readonly key: ZLinkStoreKey;
  readonly version: ZLinkStoreVersion;
}

export type ZLinkStoreWriteResult =
  | {
      readonly kind: 'applied';
      /** In the order of the puts. */
      readonly putVersions: readonly ZLinkStorePutVersion[];
      readonly storeNow: Date;
    }
  | { readonly kind: 'conflict'; readonly storeNow: Date };

export interface ZLinkStoreScanRequest {
  /** UTF-8, 0..1,024 bytes. */
  readonly prefix: string;
  readonly cursor?: ZLinkStoreScanCursor;
  /** 1..1,000. */
  readonly limit: number;
}

export interface ZLinkStoreScanItem {
  readonly key: ZLinkStoreKey;
  readonly value: ZLinkStoreValue;
}

export interface ZLinkStoreScanPage {
  readonly items: readonly ZLinkStoreScanItem[];
  /** There exactly when another item is known to follow. */
  readonly nextCursor?: ZLinkStoreScanCursor;
  readonly storeNow: Date;
}

export type ZLinkStoreScanResult =
  | { readonly kind: 'page'; readonly value: ZLinkStoreScanPage }
  /** The snapshot is gone: drop what was read and start again. */
  | { readonly kind: 'expired' };

export interface ZLinkLocationStore {
  read(key: ZLinkStoreKey, signal?: AbortSignal): Promise<ZLinkStoreReadResult>;

  /** All conditions are checked first; if all hold, all mutations are applied as one atomic commit. */
  write(request: ZLinkStoreWriteRequest, signal?: AbortSignal): Promise<ZLinkStoreWriteResult>;

  /** One page of a snapshot that the first page fixes. */
  scan(request: ZLinkStoreScanRequest, signal?: AbortSignal): Promise<ZLinkStoreScanResult>;

  /** Called once by a framework that owns the store, after all that depends on the store has ended. */
  dispose?(): void | Promise<void>;
}

// ---- Relocation Store -----------------------------------------------------------------------------------------------

declare const zlinkBlobReferenceBrand: unique symbol;

/** A reference that the framework issues before it puts: opaque UTF-8, 1..4,096 bytes; never used for other content. */
export interface ZLinkBlobReference {
  readonly value: string;
  readonly [zlinkBlobReferenceBrand]: true;
}

export type ZLinkBlobPutResult =
  | {
      readonly kind: 'stored' | 'alreadyStored';
      readonly expiresAt: Date;
      readonly storeNow: Date;
    }
  | { readonly kind: 'conflict'; readonly storeNow: Date };

export type ZLinkBlobReadResult =
  | { readonly kind: 'missing'; readonly storeNow: Date }
  | {
      readonly kind: 'found';
      readonly bytes: Uint8Array;
      readonly expiresAt: Date;
      readonly storeNow: Date;
    };

export type ZLinkBlobRenewResult =
  | { readonly kind: 'missing'; readonly storeNow: Date }
  | {
      readonly kind: 'renewed';
      readonly expiresAt: Date;
      readonly storeNow: Date;
    };

export interface ZLinkRelocationStore {
  put(
    reference: ZLinkBlobReference,
    payload: Uint8Array,
    retentionMs: number,
    signal?: AbortSignal,
  ): Promise<ZLinkBlobPutResult>;

  read(reference: ZLinkBlobReference, signal?: AbortSignal): Promise<ZLinkBlobReadResult>;

  renew(reference: ZLinkBlobReference, retentionMs: number, signal?: AbortSignal): Promise<ZLinkBlobRenewResult>;

  /** Idempotent: succeeds when there is nothing under the reference, too. */
  delete(reference: ZLinkBlobReference, signal?: AbortSignal): Promise<void>;

  dispose?(): void | Promise<void>;
}
