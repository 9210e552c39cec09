// The programs that take part, and how the driver talks to them (README.md).
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** How each is started. */
export const PARTICIPANTS = {
  node: {
    command: () => [process.execPath, 'tests/interop/node/participant.mjs'],
  },
  java: {
    // `make` has put there what Java needs.
    command: () => {
      const classPath = readFileSync(`${root}/target/interop-java.classpath`, 'utf8').trim();
      return ['java', '-Xcheck:jni', '-cp', classPath, 'tests/interop/java/Participant.java'];
    },
  },
  python: {
    // The environment that `make build-python` makes.
    command: () => [process.env.ZLINK_PYTHON ?? 'target/python/venv/bin/python', 'tests/interop/python/participant.py'],
  },
  kotlin: {
    // The artifact and the participant, as `make build-kotlin` has put them there.
    command: () => ['java', '-cp', readFileSync(`${root}/target/kotlin.classpath`, 'utf8').trim(), 'interop.ParticipantKt'],
  },
};

/** A running participant. */
export class Participant {
  #process;
  #waiting = new Map();
  #last = 0;
  #ended;
  #over;

  constructor(name) {
    const [program, ...options] = PARTICIPANTS[name].command();
    this.name = name;
    this.#process = spawn(program, options, { cwd: root, stdio: ['pipe', 'pipe', 'inherit'] });
    createInterface({ input: this.#process.stdout }).on('line', (line) => this.#answer(JSON.parse(line)));
    this.#ended = new Promise((resolve) => {
      this.#process.on('error', resolve).on('exit', resolve);
    }).then((how) => {
      this.#fail(new Error(`participant ${name} has ended: ${how}`));
      return how;
    });
    this.#process.stdin.on('error', () => {});
  }

  /** Has a request obeyed; resolves to its result, or rejects with the store's error. The signal cancels it there. */
  async ask(request, signal) {
    const id = ++this.#last;
    const cancel = () => this.ask({ do: 'cancel', request: id }).catch(() => {});
    signal?.addEventListener('abort', cancel);
    try {
      return await this.#write({ id, ...request });
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  #write(request) {
    return new Promise((resolve, reject) => {
      if (this.#over !== undefined) return reject(this.#over);
      this.#waiting.set(request.id, { resolve, reject });
      this.#process.stdin.write(`${JSON.stringify(request)}\n`);
    });
  }

  #answer({ id, result, error }) {
    const { resolve, reject } = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) resolve(result);
    else reject(storeError(error));
  }

  #fail(error) {
    this.#over = error;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  /** Ends it; resolves to how it ended. */
  end() {
    this.#process.stdin.end();
    return this.#ended;
  }
}

function storeError({ code, message, ...rest }) {
  const error = code === 'INVALID_ARGUMENT' ? new RangeError(message) : new Error(message);
  return Object.assign(error, rest, { code: `ZLINK_STORE_${code}` });
}
