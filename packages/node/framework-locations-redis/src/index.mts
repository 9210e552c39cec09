// One instance for both module systems.
export type { ZLinkRedisLocationOptions, ZLinkRedisRelocationOptions } from './index.js';
export { ZLinkRedisLocationStore, ZLinkRedisRelocationStore } from './index.js';
