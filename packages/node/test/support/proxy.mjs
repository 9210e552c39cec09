// A TCP proxy in front of a server that counts what goes through and can hold it back.
import { connect, createServer } from 'node:net';

export async function startProxy(port) {
  const proxy = new TcpProxy(port);
  await new Promise((resolve) => proxy.server.listen(0, '127.0.0.1', resolve));
  return proxy;
}

class TcpProxy {
  /** Bytes that clients sent. */
  sent = 0;
  /** The last of what clients sent, as text. */
  said = '';
  #swallow = false;
  #pairs = new Set();

  constructor(port) {
    this.server = createServer((client) => {
      const server = connect(port, '127.0.0.1');
      const pair = { client, server };
      this.#pairs.add(pair);
      client.on('data', (data) => {
        this.sent += data.length;
        this.said = (this.said + data.toString('latin1')).slice(-65_536);
        server.write(data);
      });
      server.on('data', (data) => {
        if (!this.#swallow) client.write(data);
      });
      for (const [from, to] of [
        [client, server],
        [server, client],
      ]) {
        from.on('error', () => {});
        from.on('close', () => {
          this.#pairs.delete(pair);
          to.destroy();
        });
      }
    });
  }

  get url() {
    return `redis://127.0.0.1:${this.server.address().port}`;
  }

  get port() {
    return this.server.address().port;
  }

  get connections() {
    return this.#pairs.size;
  }

  /** From now on no answer comes back, on connections that are there and on new ones. */
  swallow(swallow = true) {
    this.#swallow = swallow;
  }

  cut() {
    for (const { client } of this.#pairs) client.destroy();
  }

  async stop() {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

/** Waits until `condition` holds. */
export async function until(condition, ms = 10_000) {
  const deadline = performance.now() + ms;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`after ${ms} ms there is still not: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
