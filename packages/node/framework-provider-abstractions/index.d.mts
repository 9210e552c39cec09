// One set of declarations for both module systems: two would be two incompatible sets of brands.
export * from './index.js';
