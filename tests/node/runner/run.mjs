// Runs a scenario's steps (tests/conformance/README.md, Steps around them).
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import { VERBS } from '../../conformance/stores.mjs';
import { call, errorResult } from './calls.mjs';
import { expect, field, Mismatch, show } from './expect.mjs';
import { stats } from './places.mjs';
import { withLock } from './project.mjs';
import { Form, Vars } from './values.mjs';

const LONGEST_MS = 120_000;
const PAUSE_MS = 3;
const UNTIL_MS = 20_000;
const TIMEOUT_MS = 30_000;

/** Runs a scenario at a place of its own; throws if a step fails. */
export async function run(scenario, place, capabilities) {
  const runner = new Runner(place, capabilities);
  const late = pause(LONGEST_MS, undefined, { ref: false }).then(() => {
    throw new Error(`not done after ${LONGEST_MS / 1000} s`);
  });
  try {
    await Promise.race([runner.steps(scenario.steps, ''), late]);
  } finally {
    await Promise.all(runner.opened.map((store) => store.dispose()));
  }
}

class Runner {
  opened = [];
  #named = new Map();
  #vars = new Vars();
  #seen = { versions: new Set(), ids: new Set() };
  /** The invocation of those calls of a project that name none. */
  #own = new Map();
  #invocations = new Map();
  #started = new Map();
  #place;
  #capabilities;

  constructor(place, capabilities) {
    this.#place = place;
    this.#capabilities = new Set(capabilities);
  }

  async steps(steps, at) {
    for (const [index, step] of steps.entries()) {
      if (!this.#isMeant(step)) continue;
      // Other scenarios get their turn too: where answers come at once, nothing else lets them in.
      await turn();
      const place = `${at}${index}`;
      try {
        await this.#step(step, place);
      } catch (error) {
        if (error instanceof Failed) throw error;
        throw new Failed(`step ${place}: ${error.message}`, { cause: error });
      }
    }
  }

  #isMeant(step) {
    return [step.if ?? []]
      .flat()
      .every((capability) =>
        capability.startsWith('!') ? !this.#capabilities.has(capability.slice(1)) : this.#capabilities.has(capability),
      );
  }

  async #step(step, at) {
    if ('for' in step) return this.#repeat(step, at);
    if ('until' in step) return this.#until(step);
    if ('together' in step) return this.#together(step);
    if ('check' in step) return field(this.#vars.eval(step.check), step.expect, this.#vars);
    if ('start' in step) return this.#start(step);
    if ('cancel' in step) return this.#underWay(step.cancel).controller.abort();
    if ('pending' in step) return this.#pending(step);
    if ('locks' in step) return this.#locks(step);
    let result;
    if ('open' in step) result = this.#open(step);
    else if ('close' in step) result = await this.#close(step);
    else if ('stats' in step) result = this.#stats(step);
    else if ('await' in step) result = await this.#underWay(step.await).result;
    else if ('withLock' in step) result = await this.#withLock(step, at);
    else result = await this.#call(step, this.#vars);
    this.#judge(step, result, this.#vars);
    this.#save(step, result);
  }

  #judge(step, result, vars) {
    if ('expect' in step) expect(result, step.expect, vars);
    else if ('put' in step || 'delete' in step) expect(result, 'applied', vars);
    else if ('error' in result) throw new Mismatch(`it failed: ${show(result)}`);
  }

  #save(step, result) {
    if ('save' in step) this.#vars.set(this.#vars.text(step.save), result);
  }

  #call(step, vars, signal) {
    const verb = Object.keys(VERBS).find((name) => name in step);
    if (verb === undefined) throw new Error(`no verb among ${Object.keys(step)}`);
    const subject = VERBS[verb] === 'project' ? this.#project(step, vars) : this.#store(step, vars, VERBS[verb]);
    return call(verb, step, subject, vars, this.#seen, signal);
  }

  /** The store that a step uses; `kind` is also the name of that which needs no opening. */
  #store(step, vars, kind) {
    const name = 'on' in step ? vars.text(step.on) : kind;
    if (!this.#named.has(name) && name === kind) this.#keep(name, this.#make({ store: kind }), kind);
    const store = this.#named.get(name);
    if (store === undefined) throw new Error(`no store ${name}`);
    return store;
  }

  /** The project that a step uses, with its locks for the invocation that it names. */
  #project(step, vars) {
    const project = this.#store(step, vars, 'project');
    if (!('invocation' in step)) return { project, locks: this.#own.get(project) };
    const name = vars.text(step.invocation);
    if (!this.#invocations.has(name)) throw new Error(`no invocation ${name}`);
    return { project, locks: this.#invocations.get(name) };
  }

  #locks(step) {
    const { project } = this.#project(step, this.#vars);
    const options = 'deadlineMs' in step ? [{ deadline: Date.now() + this.#vars.number(step.deadlineMs) }] : [];
    this.#invocations.set(this.#vars.text(step.locks), project.locks(...options));
  }

  async #withLock(step, at) {
    const inside = (lease) => {
      this.#vars.set('lease', lease);
      return this.steps(step.steps ?? [], `${at}.`);
    };
    try {
      return await withLock(this.#project(step, this.#vars), step, this.#vars, this.#seen, inside);
    } catch (error) {
      return errorResult(error, 'project');
    }
  }

  /** Starts a call. It is under way, and before those that are started after it, when this is done. */
  async #start(step) {
    const controller = new AbortController();
    const started = { controller, done: false };
    started.result = this.#call(step.call, this.#vars.copy(), controller.signal).finally(() => {
      started.done = true;
    });
    // Whoever waits for it gets the error; nobody may have to.
    started.result.catch(() => {});
    this.#started.set(this.#vars.text(step.start), started);
    await turn();
  }

  #underWay(name) {
    const started = this.#started.get(this.#vars.text(name));
    if (started === undefined) throw new Error(`no call ${name} was started`);
    return started;
  }

  #pending({ pending: name }) {
    if (this.#underWay(name).done) throw new Mismatch(`${this.#vars.text(name)} is done already`);
  }

  #keep(name, store, kind) {
    this.opened.push(store);
    this.#named.set(name, store);
    if (kind === 'project') this.#own.set(store, store.locks());
  }

  #make(step) {
    const { store = 'location', prefix = store === 'location' ? 'l' : 'r', exactPrefix, timeoutMs = TIMEOUT_MS } = step;
    const operationTimeoutMs = this.#vars.number(timeoutMs);
    const inFront = (text, exact) =>
      exact === undefined ? this.#place.inFront + this.#vars.text(text) : this.#vars.text(exact);
    if (store !== 'project')
      return this.#place.make(store, { keyPrefix: inFront(prefix, exactPrefix), operationTimeoutMs });
    const { workspace = 'w', exactWorkspace, project = 'p', url } = step;
    return this.#place.make(store, {
      ...(url === undefined ? {} : { url: this.#vars.text(url) }),
      workspace: inFront(workspace, exactWorkspace),
      project: this.#vars.text(project),
      operationTimeoutMs,
    });
  }

  #open(step) {
    try {
      this.#keep(this.#vars.text(step.open), this.#make(step), step.store);
      return { kind: 'opened' };
    } catch (error) {
      return errorResult(error, step.store);
    }
  }

  async #close(step) {
    const name = this.#vars.text(step.close);
    await this.#named.get(name).dispose();
    return { kind: 'closed' };
  }

  #stats(step) {
    const { operations } = stats(this.#named.get(this.#vars.text(step.stats)));
    return { kind: 'stats', operations: Object.values(operations).reduce((sum, count) => sum + count, 0) };
  }

  async #repeat(step, at) {
    const from = this.#vars.number(step.from ?? 0);
    const values =
      'in' in step
        ? step.in.map((form) => new Form(form))
        : Array.from({ length: this.#vars.number(step.times) }, (_, place) => from + place);
    for (const [index, value] of values.entries()) {
      this.#vars.set(step.for, value);
      await this.steps(step.steps, `${at}[${step.for} #${index}].`);
    }
  }

  async #until({ until, meanwhile, withinMs = UNTIL_MS }) {
    const end = performance.now() + this.#vars.number(withinMs);
    for (;;) {
      const result = await this.#call(until, this.#vars);
      try {
        this.#judge(until, result, this.#vars);
        return this.#save(until, result);
      } catch (error) {
        if (!(error instanceof Mismatch)) throw error;
        if (meanwhile !== undefined) expect(result, meanwhile, this.#vars);
        if (performance.now() > end) throw new Mismatch(`not in time: ${error.message}`);
      }
      await pause(PAUSE_MS);
    }
  }

  async #together(step) {
    const steps = this.#vars
      .copy()
      .expand(step.together)
      .filter(([form]) => this.#isMeant(form));
    const calls = steps.map(async ([form, vars]) => [form, vars, await this.#call(form, vars)]);
    const counts = {};
    for (const [form, vars, result] of await Promise.all(calls)) {
      if ('expect' in form) this.#judge(form, result, vars);
      this.#save(form, result);
      const kind = result.kind ?? result.error;
      counts[kind] = (counts[kind] ?? 0) + 1;
      const name = step.save?.[kind];
      if (name !== undefined) this.#vars.set(name, result);
    }
    if (!('expect' in step)) return;
    for (const [kind, matcher] of Object.entries(step.expect)) {
      try {
        field(counts[kind] ?? 0, matcher, this.#vars);
      } catch (error) {
        throw error instanceof Mismatch ? new Mismatch(`${kind}: ${error.message} among ${show(counts)}`) : error;
      }
    }
    const unexpected = Object.keys(counts).filter((kind) => !(kind in step.expect));
    if (unexpected.length > 0) throw new Mismatch(`unexpected results: ${show(counts)}`);
  }
}

class Failed extends Error {}
