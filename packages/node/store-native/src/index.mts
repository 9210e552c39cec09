// One instance for both module systems, so that an error is of the same class in both.
export type {
  ZLinkLogEvent,
  ZLinkNativeStore,
  ZLinkStoreErrorCode,
  ZLinkStoreOutcome,
  ZLinkStoreStats,
} from './index.js';
export { onLog, ping, stats, ZLinkStoreError } from './index.js';
