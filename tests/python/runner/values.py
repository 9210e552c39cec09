"""Values of a scenario: variables, texts, numbers, bytes (tests/conformance/README.md, Values)."""

import re

_BLOCK = 4099


class Form:
    """A form that is worked out where it is used."""

    def __init__(self, form):
        self.form = form


class Vars:
    """The variables that a step sees."""

    def __init__(self, values=None):
        self._values = {} if values is None else values

    def set(self, name, value):
        self._values[name] = value

    def having(self, name, value):
        """The same variables and one more."""
        return Vars({**self._values, name: value})

    def copy(self):
        """The variables as they are now, whatever is saved later."""
        return Vars(dict(self._values))

    def _look_up(self, path):
        name, *fields = path.split(".")
        if name not in self._values:
            raise LookupError(f"no variable {name}")
        value = self._values[name]
        for field in fields:
            if isinstance(value, list):
                value = value[int(field)]
            elif isinstance(value, dict) and field in value:
                value = value[field]
            else:
                raise LookupError(f"{path} is not there")
        return self.eval(value.form) if isinstance(value, Form) else value

    def eval(self, form):
        """Works a form out."""
        if isinstance(form, (int, float)):
            return form
        if isinstance(form, str):
            return self._template(form)
        if not isinstance(form, dict):
            raise ValueError(f"{form} is no value")
        if "var" in form:
            return self._look_up(self.text(form["var"]))
        if "repeat" in form:
            return self.text(form["repeat"]) * self.number(form["times"])
        if "join" in form:
            return "".join(self.text(part) for part in form["join"])
        if "bend" in form:
            return _bend(self.text(form["bend"]), self.number(form["at"]))
        if "cut" in form:
            return self.text(form["cut"])[: self.number(form["to"])]
        if "sum" in form:
            return sum(self.number(part) for part in form["sum"])
        if "minus" in form:
            first, *others = (self.number(part) for part in form["minus"])
            return first - sum(others)
        if "hex" in form:
            return bytes.fromhex(form["hex"])
        if "fill" in form:
            filled = _fill(self.number(form["fill"]), self.number(form["size"]))
            if "flip" in form:
                filled[self.number(form["flip"])] ^= 0xFF
            return bytes(filled)
        raise ValueError(f"{form} is no value")

    def _template(self, text):
        def value(match):
            found = self._look_up(match[1])
            if isinstance(found, bool) or not isinstance(found, (int, str)):
                raise ValueError(f"{match[1]} in a text")
            return str(found).zfill(int(match[2] or 0)) if isinstance(found, int) else found

        return re.sub(r"\$\{([^}:]*)(?::(\d+))?\}", value, text)

    def text(self, form):
        return self._of(str, form)

    def number(self, form):
        return self._of((int, float), form)

    def bytes(self, form):
        value = self._of((str, bytes), form)
        return value.encode() if isinstance(value, str) else value

    def _of(self, kind, form):
        value = self.eval(form)
        if not isinstance(value, kind):
            raise ValueError(f"{form} is no {kind}")
        return value

    def expand(self, elements):
        """Elements with `times` become that many, each with its own `i`; each comes with the variables that it sees."""
        expanded = []
        for element in elements:
            if not isinstance(element, dict) or "times" not in element or "repeat" in element:
                expanded.append((element, self))
                continue
            start = self.number(element.get("from", 0))
            expanded.extend((element, self.having("i", start + at)) for at in range(self.number(element["times"])))
        return expanded


def _bend(text, at):
    place = len(text) + at if at < 0 else at
    if not 0 <= place < len(text):
        raise ValueError("a bend outside the text")
    return text[:place] + ("B" if text[place] == "A" else "A") + text[place + 1 :]


def _fill(seed, size):
    block, x = bytearray(), seed
    for _ in range(min(_BLOCK, size)):
        x = (x * 1103515245 + 12345) % 2**31
        block.append((x >> 16) & 0xFF)
    return bytearray() if size == 0 else bytearray((block * (size // len(block) + 1))[:size])
