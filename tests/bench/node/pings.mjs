// Measures PING of one client from a process of its own: `begin` and `end` on stdin, a JSON array of milliseconds out.
import { performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { createClient } from 'redis';

const client = await createClient({ url: process.argv[2] }).connect();
let running;
for await (const line of createInterface(process.stdin)) {
  if (line === 'begin') {
    let stopped = false;
    const waits = [];
    const done = (async () => {
      while (!stopped) {
        const began = performance.now();
        await client.ping();
        waits.push(Number((performance.now() - began).toFixed(3)));
      }
    })();
    running = async () => { stopped = true; await done; console.log(JSON.stringify(waits)); };
  } else if (line === 'end') {
    await running();
  }
}
client.destroy();
