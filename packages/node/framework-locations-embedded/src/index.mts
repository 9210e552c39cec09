// One instance for both module systems.
export type { ZLinkEmbeddedLocationOptions, ZLinkEmbeddedRelocationOptions } from './index.js';
export { ZLinkEmbeddedLocationStore, ZLinkEmbeddedRelocationStore } from './index.js';
