# SPDX-License-Identifier: Apache-2.0
"""Reads our Containerfile: the instructions that stand in it, in the forms that it uses. Anything else is refused with its
line, so that an engine and tools/image never build two different images from it."""

import json
import re
import shlex

KNOWN = ("ARG", "COPY", "ENTRYPOINT", "EXPOSE", "FROM", "LABEL", "RUN", "USER", "WORKDIR")
VARIABLE = re.compile(r"\$\{(\w+)\}")


class Problem(Exception):
    """Its text is for the user."""


class Step:
    def __init__(self, line, word, text):
        self.line, self.word, self.text = line, word, text


class Stage:
    """From a FROM to the next: base is what it says there, steps the rest, without ARG."""

    def __init__(self, name, base, values):
        self.name, self.base, self.values, self.steps = name, base, values, []

    def texts(self, word):
        return [step.text for step in self.steps if step.word == word]

    def only(self, word):
        """The text of an instruction that must stand there once."""
        found = self.texts(word)
        if len(found) != 1:
            raise Problem("Containerfile: the stage %s has %d times %s, and this needs one" % (self.name, len(found), word))
        return found[0]

    def labels(self):
        return dict(part.partition("=")[::2] for text in self.texts("LABEL") for part in shlex.split(text))

    def ports(self):
        return {"%s/tcp" % port: {} for text in self.texts("EXPOSE") for port in text.split()}

    def entrypoint(self):
        return json.loads(self.only("ENTRYPOINT"))

    def copied_from(self, name):
        """(what, to) of the one COPY --from=NAME."""
        match = re.fullmatch(r"--from=%s (\S+) (\S+)" % re.escape(name), self.only("COPY"))
        if not match:
            raise Problem("Containerfile: the stage %s does not COPY --from=%s WHAT TO" % (self.name, name))
        return match.groups()


def instructions(text):
    """(line, word, rest) of each, with lines that end in a backslash joined."""
    joined, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip().startswith("#") or (not line.strip() and not joined):
            continue
        first = first if joined else number
        if line.rstrip().endswith("\\"):
            joined += line.rstrip()[:-1]
            continue
        word, _, rest = (joined + line).strip().partition(" ")
        yield first, word, " ".join(rest.split()) if word != "LABEL" else rest.strip()
        joined = ""


def parse(text, given):
    """The stages by name. given: values of ARGs, as --build-arg; one that no ARG names is a mistake."""
    stages, outer, stage, used = {}, {}, None, set()
    for line, word, rest in instructions(text):
        if word not in KNOWN:
            raise Problem("Containerfile, line %d: %s is not understood here; there are %s" % (line, word, ", ".join(KNOWN)))
        values = stage.values if stage else outer
        try:
            rest = VARIABLE.sub(lambda match, values=values if word != "FROM" else outer: values[match[1]], rest)
        except KeyError as error:
            raise Problem("Containerfile, line %d: no ARG in this stage names %s" % (line, error)) from None
        if word == "ARG":
            name, _, default = rest.partition("=")
            values[name] = given.get(name, default)
            used.add(name)
        elif word == "FROM":
            match = re.fullmatch(r"(\S+) AS (\w+)", rest)
            if not match:
                raise Problem("Containerfile, line %d: each stage needs a name: FROM BASE AS NAME" % line)
            stage = stages[match[2]] = Stage(match[2], match[1], {})
        elif stage is None:
            raise Problem("Containerfile, line %d: %s stands before the first FROM" % (line, word))
        else:
            stage.steps.append(Step(line, word, rest))
    if set(given) - used:
        raise Problem("Containerfile: no ARG names %s" % ", ".join(sorted(set(given) - used)))
    return stages
