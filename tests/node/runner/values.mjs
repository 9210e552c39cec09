// Values of a scenario: variables, texts, numbers, bytes (tests/conformance/README.md, Values).

/** A form that is worked out where it is used. */
export class Form {
  constructor(form) {
    this.form = form;
  }
}

/** The variables that a step sees. */
export class Vars {
  #values;

  constructor(values = new Map()) {
    this.#values = values;
  }

  set(name, value) {
    this.#values.set(name, value);
  }

  /** The same variables and one more. */
  with(name, value) {
    return new Vars(new Map(this.#values).set(name, value));
  }

  /** A value as it is now, whatever is saved later. */
  copy() {
    return new Vars(new Map(this.#values));
  }

  #lookUp(path) {
    const [name, ...fields] = path.split('.');
    if (!this.#values.has(name)) throw new Error(`no variable ${name}`);
    let value = this.#values.get(name);
    for (const field of fields) {
      if (value === null || typeof value !== 'object' || !Object.hasOwn(value, field))
        throw new Error(`${path} is not there`);
      value = value[field];
    }
    return value instanceof Form ? this.eval(value.form) : value;
  }

  /** Works a form out. */
  eval(form) {
    if (typeof form === 'number') return form;
    if (typeof form === 'string') return this.#template(form);
    if (form === null || typeof form !== 'object') throw new Error(`${form} is no value`);
    if ('var' in form) return this.#lookUp(this.text(form.var));
    if ('repeat' in form) return this.text(form.repeat).repeat(this.number(form.times));
    if ('join' in form) return form.join.map((part) => this.text(part)).join('');
    if ('utf16' in form) return String.fromCharCode(...form.utf16);
    if ('bend' in form) return bend(this.text(form.bend), this.number(form.at));
    if ('cut' in form) return this.text(form.cut).slice(0, this.number(form.to));
    if ('sum' in form) return form.sum.reduce((sum, part) => sum + this.number(part), 0);
    if ('minus' in form) return form.minus.map((part) => this.number(part)).reduce((left, part) => left - part);
    if ('hex' in form) return new Uint8Array(Buffer.from(form.hex, 'hex'));
    if ('fill' in form) {
      const bytes = fill(this.number(form.fill), this.number(form.size));
      if ('flip' in form) bytes[this.number(form.flip)] ^= 0xff;
      return bytes;
    }
    throw new Error(`${JSON.stringify(form)} is no value`);
  }

  /** A text with its `${…}` filled in. */
  #template(text) {
    return text.replace(/\$\{([^}:]*)(?::(\d+))?\}/g, (_, path, width) => {
      const value = this.#lookUp(path);
      if (typeof value !== 'number' && typeof value !== 'string') throw new Error(`${path} in a text`);
      return String(value).padStart(typeof value === 'number' ? Number(width ?? 0) : 0, '0');
    });
  }

  text(form) {
    const value = this.eval(form);
    if (typeof value !== 'string') throw new Error(`${JSON.stringify(form)} is no text`);
    return value;
  }

  number(form) {
    const value = this.eval(form);
    if (typeof value !== 'number') throw new Error(`${JSON.stringify(form)} is no number`);
    return value;
  }

  bytes(form) {
    const value = this.eval(form);
    if (typeof value === 'string') return new Uint8Array(Buffer.from(value));
    if (value instanceof Uint8Array) return value;
    throw new Error(`${JSON.stringify(form)} are no bytes`);
  }

  /** Elements with `times` become that many, each with its own `i`; each comes with the variables that it sees. */
  expand(list) {
    return list.flatMap((element) => {
      if (element === null || typeof element !== 'object' || !('times' in element) || 'repeat' in element) {
        return [[element, this]];
      }
      const from = this.number(element.from ?? 0);
      return Array.from({ length: this.number(element.times) }, (_, at) => [element, this.with('i', from + at)]);
    });
  }
}

function bend(text, at) {
  const place = at < 0 ? text.length + at : at;
  if (place < 0 || place >= text.length) throw new Error('a bend outside the text');
  return text.slice(0, place) + (text[place] === 'A' ? 'B' : 'A') + text.slice(place + 1);
}

const BLOCK = 4099;

function fill(seed, size) {
  const block = new Uint8Array(Math.min(BLOCK, size));
  let x = BigInt(seed);
  for (let at = 0; at < block.length; at++) {
    x = (x * 1103515245n + 12345n) % 2147483648n;
    block[at] = Number((x >> 16n) & 0xffn);
  }
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += BLOCK) bytes.set(block.subarray(0, Math.min(BLOCK, size - at)), at);
  return bytes;
}
