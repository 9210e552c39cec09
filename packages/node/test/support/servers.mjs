// Servers of `zlink-test-servers`, which are told on a line what shall happen to them; they end with this process.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Starts one with what stands on its command line; `--help` of the program says what there is. */
export async function startServer(...args) {
  const program = fileURLToPath(new URL('../../../../target/debug/zlink-test-servers', import.meta.url));
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.once('error', (error) => {
    console.error(`cargo build -p zlink-test-servers: ${error.message}`);
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`the starter of test servers ended with ${child.exitCode}`);
    return JSON.parse(value);
  };
  return {
    ...(await answer()),
    /** Says one command; commands are answered one after the other. */
    async say(command) {
      child.stdin.write(`${command}\n`);
      const said = await answer();
      if (said.error !== undefined) throw new Error(`${command}: ${said.error}`);
      return said;
    },
    async stop() {
      child.stdin.end();
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}
