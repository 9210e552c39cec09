// What memory a process holds.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Collects all garbage now. */
export const collectGarbage = runInNewContext('gc');

/** Resident memory in MiB after garbage and its finalizers are gone. */
export async function residentMemory() {
  for (let round = 0; round < 3; round++) {
    collectGarbage();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return process.memoryUsage.rss() / 2 ** 20;
}
