import { embeddedOpening, NativeLocationStore, NativeRelocationStore } from '@zlink-systems/store-native/internal';

export interface ZLinkEmbeddedLocationOptions {
  /** A folder; left out, the data lives in memory of the store object. */
  readonly path?: string;
  /** The store's name space within the folder; at most 256 bytes of UTF-8, without braces. Empty if left out. */
  readonly keyPrefix?: string;
  /** 5,000 if left out. */
  readonly operationTimeoutMs?: number;
}

export interface ZLinkEmbeddedRelocationOptions {
  /** A folder; left out, the data lives in memory of the store object. */
  readonly path?: string;
  /** The store's name space within the folder; at most 256 bytes of UTF-8, without braces. Empty if left out. */
  readonly keyPrefix?: string;
  /** 5,000 if left out. */
  readonly operationTimeoutMs?: number;
}

/** A Location Store in memory or in a folder. */
export class ZLinkEmbeddedLocationStore extends NativeLocationStore {
  constructor(options?: ZLinkEmbeddedLocationOptions) {
    super(() => embeddedOpening(options));
  }
}

/** A Relocation Store in memory or in a folder. */
export class ZLinkEmbeddedRelocationStore extends NativeRelocationStore {
  constructor(options?: ZLinkEmbeddedRelocationOptions) {
    super(() => embeddedOpening(options));
  }
}
