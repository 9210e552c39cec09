// Bytes on the wire (README.md).
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// Long lines are slow to read.
const IN_FILE_FROM = 64 * 1024;

let folder;
let written = 0;

/** The form of `bytes` on the wire. */
export function pack(bytes) {
  if (bytes.length < IN_FILE_FROM) return Buffer.from(bytes).toString('base64');
  if (folder === undefined) {
    folder = mkdtempSync(join(tmpdir(), 'zlink-interop-bytes-'));
    process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  }
  const file = join(folder, `${written++}`);
  writeFileSync(file, bytes);
  return { file };
}

/** The bytes that came in that form. */
export function unpack(form) {
  if (typeof form === 'string') return new Uint8Array(Buffer.from(form, 'base64'));
  const bytes = readFileSync(form.file);
  rmSync(form.file);
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
}
