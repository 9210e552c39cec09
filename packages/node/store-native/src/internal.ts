// For the other ZLink packages of the same version only.
export { NativeLocationStore } from './location';
export { embeddedOpening, redisOpening } from './options';
export { NativeRelocationStore } from './relocation';
