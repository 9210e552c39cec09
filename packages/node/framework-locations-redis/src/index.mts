// One instance for both module systems.
export * from './index.js';
