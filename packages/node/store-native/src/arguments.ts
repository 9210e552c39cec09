// What arguments look like. Their limits are the core's matter.

import { types } from 'node:util';
import { Wrong } from './errors';
import { bufferOf, lengthOf } from './wire';

/** The text of a key, version, cursor or reference. */
export function textOf(opaque: unknown, argument: string): string {
  const value = typeof opaque === 'object' && opaque !== null ? (opaque as { value?: unknown }).value : undefined;
  if (typeof value === 'string') return value;
  const got = typeof opaque === 'object' && opaque !== null ? `one whose value is ${kindOf(value)}` : kindOf(opaque);
  throw new Wrong('type', argument, `must be an object whose value is a string, got ${got}`);
}

export function stringOf(value: unknown, argument: string): string {
  if (typeof value === 'string') return value;
  throw new Wrong('type', argument, `must be a string, got ${kindOf(value)}`);
}

export function numberOf(value: unknown, argument: string): number {
  if (typeof value === 'number') return value;
  throw new Wrong('type', argument, `must be a number, got ${kindOf(value)}`);
}

export function objectOf<T extends object>(value: T, argument: string): T {
  if (typeof value === 'object' && value !== null) return value;
  throw new Wrong('type', argument, `must be an object, got ${kindOf(value)}`);
}

export function arrayOf<T>(value: readonly T[], argument: string): readonly T[] {
  if (Array.isArray(value)) return value;
  throw new Wrong('type', argument, `must be an array, got ${kindOf(value)}`);
}

/** The length of an array, read once: a proxy may say anything. */
export function countOf(value: readonly unknown[], argument: string): number {
  const { length } = arrayOf(value, argument);
  if (Number.isInteger(length) && length >= 0) return length;
  throw new Wrong('type', argument, 'must be an array with a whole number of elements');
}

/** Any `Uint8Array`, of this realm or another, whose memory is still there. */
export function bytesOf(value: unknown, argument: string): Uint8Array {
  if (!types.isUint8Array(value)) {
    throw new Wrong('type', argument, `must be a Uint8Array, got ${kindOf(value)}`);
  }
  if (lengthOf(value) === 0 && isDetached(bufferOf(value))) {
    throw new Wrong('type', argument, 'must not be detached');
  }
  return value;
}

function isDetached(buffer: ArrayBufferLike): boolean {
  try {
    new Uint8Array(buffer);
    return false;
  } catch {
    return true;
  }
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value !== 'object') return typeof value;
  const name = (value.constructor as { name?: unknown } | undefined)?.name;
  return typeof name === 'string' && name !== '' ? `an instance of ${name}` : 'an object';
}
