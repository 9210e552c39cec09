// What a program asked of the kernel, as strace saw it.
import { readFileSync } from 'node:fs';
import { run } from './scripts.mjs';

/** Runs a program under strace; gives back how it ended, and the calls named, in the order in which they began. */
export async function trace(source, calls, file) {
  // -D: the program is our own child and strace is left aside; -y: the paths of descriptors; so much of what is written.
  const strace = ['strace', '-D', '-f', '-y', '-s', '20000', '-e', `trace=${calls}`, '-o', file];
  const end = await run(source, { module: false, ms: 120_000, under: strace });
  return { ...end, calls: parse(readFileSync(file, 'latin1')) };
}

function parse(text) {
  const calls = [];
  const unfinished = new Map();
  for (const [line, words] of text.split('\n').entries()) {
    const [, thread, event] = /^(\d+) +(.*)$/.exec(words) ?? [];
    const [, rest] = /^<\.\.\. \w+ resumed>(.*)$/.exec(event) ?? [];
    if (rest !== undefined) {
      const call = unfinished.get(thread);
      if (call !== undefined) Object.assign(call, { ended: line, result: resultOf(rest) });
      unfinished.delete(thread);
      continue;
    }
    const [, name, said] = /^(\w+)\((.*)$/.exec(event) ?? [];
    if (name === undefined) continue;
    const [, descriptor, path] = /^(\d+)<([^>]*)>/.exec(said) ?? [];
    const call = { name, said, descriptor: Number(descriptor), path, began: line, ended: line, result: resultOf(said) };
    if (said.endsWith('<unfinished ...>')) {
      Object.assign(call, { ended: Number.POSITIVE_INFINITY, result: undefined });
      unfinished.set(thread, call);
    }
    calls.push(call);
  }
  return calls;
}

const resultOf = (text) => Number(/\) += (-?\d+)[^"]*$/.exec(text)?.[1]);
