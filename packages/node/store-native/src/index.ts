export { onLog, ping, stats, type ZLinkNativeStore, type ZLinkStoreStats } from './diagnostics';
export { ZLinkStoreError, type ZLinkStoreErrorCode, type ZLinkStoreOutcome } from './errors';
export type { LogEvent as ZLinkLogEvent } from './log';
