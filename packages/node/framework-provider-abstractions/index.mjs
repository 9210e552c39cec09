// The package holds types only.
export {};
