// Runs a scenario's steps (tests/conformance/README.md, Steps around them).
import { setTimeout as pause } from 'node:timers/promises';
import { call, errorResult, VERBS } from './calls.mjs';
import { expect, field, Mismatch, show } from './expect.mjs';
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
  #versions = new Set();
  #place;
  #capabilities;

  constructor(place, capabilities) {
    this.#place = place;
    this.#capabilities = new Set(capabilities);
  }

  async steps(steps, at) {
    for (const [index, step] of steps.entries()) {
      if (!this.#isMeant(step)) continue;
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
    let result;
    if ('open' in step) result = this.#open(step);
    else if ('close' in step) result = await this.#close(step);
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

  #call(step, vars) {
    const verb = Object.keys(VERBS).find((name) => name in step);
    if (verb === undefined) throw new Error(`no verb among ${Object.keys(step)}`);
    const name = 'on' in step ? vars.text(step.on) : VERBS[verb];
    if (!this.#named.has(name) && name === VERBS[verb]) this.#keep(name, this.#make({ store: name }));
    const store = this.#named.get(name);
    if (store === undefined) throw new Error(`no store ${name}`);
    return call(verb, step, store, vars, this.#versions);
  }

  #keep(name, store) {
    this.opened.push(store);
    this.#named.set(name, store);
  }

  #make({ store = 'location', prefix = store === 'location' ? 'l' : 'r', exactPrefix, timeoutMs = TIMEOUT_MS }) {
    const keyPrefix =
      exactPrefix === undefined ? this.#place.inFront + this.#vars.text(prefix) : this.#vars.text(exactPrefix);
    return this.#place.make(store, { keyPrefix, operationTimeoutMs: this.#vars.number(timeoutMs) });
  }

  #open(step) {
    try {
      this.#keep(this.#vars.text(step.open), this.#make(step));
      return { kind: 'opened' };
    } catch (error) {
      return errorResult(error);
    }
  }

  async #close(step) {
    const name = this.#vars.text(step.close);
    await this.#named.get(name).dispose();
    return { kind: 'closed' };
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
