// For the other ZLink packages of the same version only.
export { NativeLocationStore } from './location';
export { embeddedOpening, redisOpening } from './options';
export * from './project';
export * from './project-errors';
export { NativeRelocationStore } from './relocation';
