// The package holds types only.
Object.defineProperty(exports, '__esModule', { value: true });
