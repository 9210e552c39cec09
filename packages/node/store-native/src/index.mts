// One instance for both module systems, so that an error is of the same class in both.
export * from './index.js';
