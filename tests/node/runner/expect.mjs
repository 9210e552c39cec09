// Whether a result is as expected (tests/conformance/README.md, Expectations).

/** Something is not as expected; any other error means that the scenario makes no sense. */
export class Mismatch extends Error {}

const CONDITIONS = ['not', 'atLeast', 'atMost', 'above', 'below', 'oneOf', 'size', 'present'];
const FIELDS = ['key', 'bytes', 'version', 'expiresAt'];

/** Checks a result against a step's expectation. */
export function expect(result, expectation, vars) {
  if (typeof expectation === 'string') {
    if (result.kind !== expectation) fail(`expected ${expectation}, got ${show(result)}`);
    return;
  }
  if ('oneOf' in expectation) {
    oneOf(expectation.oneOf, (one) => expect(result, one, vars));
    return;
  }
  const seen = vars.with('it', result);
  for (const [name, matcher] of Object.entries(expectation)) {
    within(`${name} of ${show(result)}`, () => {
      if (name === 'argument') contains(result.argument ?? result.message, seen.text(matcher));
      else if (name === 'says') contains(result.message, seen.text(matcher));
      // An error of the platform's own may carry no outcome.
      else if (name === 'outcome' && result.error !== undefined && result.outcome === undefined) return;
      else field(result[name], matcher, seen);
    });
  }
}

/** Checks one field; `undefined` if it is not there. */
export function field(actual, matcher, vars) {
  if (matcher === null) {
    if (actual !== undefined) fail('expected it to be absent');
    return;
  }
  if (actual === undefined) fail('it is absent');
  if (Array.isArray(matcher)) list(actual, matcher, vars);
  else if (typeof matcher === 'object' && !('fill' in matcher) && CONDITIONS.some((name) => name in matcher)) {
    conditions(actual, matcher, vars);
  } else {
    const expected = vars.eval(matcher);
    const given = actual instanceof Uint8Array && typeof expected === 'string' ? Buffer.from(expected) : expected;
    if (!equal(actual, given)) fail(`expected ${show(given)}, got ${show(actual)}`);
  }
}

function list(actual, elements, vars) {
  if (!Array.isArray(actual)) fail('expected a list');
  const expected = vars.expand(elements);
  if (expected.length !== actual.length) fail(`expected ${expected.length} elements, got ${actual.length}`);
  for (const [index, [element, seen]] of expected.entries()) {
    within(`element ${index}, ${show(actual[index])}`, () => {
      if (element === null || typeof element !== 'object' || !FIELDS.some((name) => name in element)) {
        field(actual[index], element, seen);
        return;
      }
      for (const [name, matcher] of Object.entries(element)) {
        if (name !== 'times' && name !== 'from') field(actual[index][name], matcher, seen);
      }
    });
  }
}

function conditions(actual, matcher, vars) {
  const holds = {
    present: () => true,
    oneOf: (all) => oneOf(all, (one) => field(actual, one, vars)),
    not: (one) => !matches(() => field(actual, one, vars)),
    size: (one) => {
      field(typeof actual === 'string' ? Buffer.byteLength(actual) : actual.length, one, vars);
      return true;
    },
    atLeast: (number) => actual >= vars.number(number),
    atMost: (number) => actual <= vars.number(number),
    above: (number) => actual > vars.number(number),
    below: (number) => actual < vars.number(number),
  };
  for (const [name, argument] of Object.entries(matcher)) {
    if (!holds[name](argument)) fail(`${show(actual)} is not ${name} ${JSON.stringify(argument)}`);
  }
}

function oneOf(alternatives, check) {
  const said = [];
  for (const alternative of alternatives) {
    try {
      check(alternative);
      return true;
    } catch (error) {
      if (!(error instanceof Mismatch)) throw error;
      said.push(error.message);
    }
  }
  return fail(`none of: ${said.join(' | ')}`);
}

function matches(check) {
  try {
    check();
    return true;
  } catch (error) {
    if (error instanceof Mismatch) return false;
    throw error;
  }
}

function contains(text, part) {
  if (typeof text !== 'string' || !text.includes(part)) fail(`expected it to name ${part}`);
}

function within(place, check) {
  try {
    check();
  } catch (error) {
    if (error instanceof Mismatch) throw new Mismatch(`${place}: ${error.message}`);
    throw error;
  }
}

function equal(a, b) {
  if (a instanceof Uint8Array || b instanceof Uint8Array) {
    return a instanceof Uint8Array && b instanceof Uint8Array && Buffer.compare(a, b) === 0;
  }
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b;
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && equal(a[name], b[name]))
  );
}

function fail(said) {
  throw new Mismatch(said);
}

/** A value for a person, shortened. */
export function show(value) {
  if (typeof value === 'string') return value.length <= 80 ? JSON.stringify(value) : `a text of ${value.length} units`;
  if (value instanceof Uint8Array) {
    return value.length <= 32 ? `bytes ${Buffer.from(value).toString('hex')}` : `${value.length} bytes`;
  }
  if (Array.isArray(value))
    return `[${value.slice(0, 3).map(show).join(', ')}${value.length > 3 ? `, … ${value.length}` : ''}]`;
  if (value === null || typeof value !== 'object') return String(value);
  return `{ ${Object.entries(value)
    .map(([name, part]) => `${name}: ${show(part)}`)
    .join(', ')} }`;
}
