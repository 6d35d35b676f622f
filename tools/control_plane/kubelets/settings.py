# SPDX-License-Identifier: Apache-2.0
"""How a Pod is to behave, from three sources.

For each setting on its own the first of these that has it counts:

  1. the rules that were told live, the one told last first; a rule may name a namespace, a Pod
     and a label selector, and applies to the Pods that match all it names
  2. the annotations kubelets.slipway.dev/NAME of the Pod
  3. the defaults of the command line

So whoever speaks last is heard, and a rule can change what a template says without changing the
template (which would roll the workload).
"""

import re

PREFIX = "kubelets.slipway.dev/"

# Reasons with which a container waits that never ran; with all others it ran and ended.
NEVER_RAN = {"ImagePullBackOff", "ErrImagePull", "InvalidImageName", "CreateContainerConfigError",
             "CreateContainerError"}
REASONS = NEVER_RAN | {"CrashLoopBackOff", "RunContainerError", "OOMKilled"}


class Mistake(ValueError):
    """What somebody told us makes no sense; the text says what and what would."""


def duration(text):
    """Seconds of "1m30s", "200ms", "2" and the like."""
    text = str(text).strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise Mistake('"%s" is not a time such as 3s, 200ms or 1m30s' % text)
    return sum(float(number) * units[unit] for number, unit in parts)


def _duration_or_grace(text):
    return "grace" if text == "grace" else duration(text)


def _boolean(text):
    if text in (True, False):
        return text
    if str(text).lower() in ("true", "false"):
        return str(text).lower() == "true"
    raise Mistake('"%s" is neither true nor false' % text)


def _reason(text):
    if text in ("", "no", "none"):
        return ""
    if text not in REASONS:
        raise Mistake('"%s" is not one of %s' % (text, ", ".join(sorted(REASONS))))
    return text


def _flap(text):
    value = duration(text)
    if 0 < value < 0.05:
        raise Mistake('"%s" is too short; 50ms is the shortest' % text)
    return value


# What each setting means stands in tools/kubelets --help.
PARSERS = {
    "start": duration,
    "stop": _duration_or_grace,
    "ready": _boolean,
    "fail": _reason,
    "flap": _flap,
}

DEFAULTS = {"start": 0.1, "stop": 0.1, "ready": True, "fail": "", "flap": 0.0}


def parse(told):
    """The settings in `told`, a dict of texts; Mistake names the one that makes no sense."""
    result = {}
    for name, text in told.items():
        if name not in PARSERS:
            raise Mistake('there is no setting "%s"; there are %s'
                          % (name, ", ".join(sorted(PARSERS))))
        try:
            result[name] = PARSERS[name](text)
        except Mistake as mistake:
            raise Mistake("%s: %s" % (name, mistake)) from None
    return result


class Selector:
    """A label selector as kubectl writes it: a=b,c!=d,e in (x,y),f notin (z),g,!h."""

    def __init__(self, text):
        self.text = text.strip()
        self._terms = [self._term(term.strip())
                       for term in re.split(r",(?![^(]*\))", self.text) if term.strip()]

    @staticmethod
    def _term(text):
        for pattern, operator in (
                (r"([^\s=!(),]+)\s*==?\s*([^\s=!(),]*)", "In"),
                (r"([^\s=!(),]+)\s*!=\s*([^\s=!(),]*)", "NotIn"),
                (r"([^\s=!(),]+)\s+in\s*\(([^()]*)\)", "In"),
                (r"([^\s=!(),]+)\s+notin\s*\(([^()]*)\)", "NotIn"),
                (r"([^\s=!(),]+)()", "Exists"),
                (r"!\s*([^\s=!(),]+)()", "DoesNotExist")):
            found = re.fullmatch(pattern, text)
            if found:
                values = [value.strip() for value in found[2].split(",")]
                return found[1], operator, values
        raise Mistake('"%s" is not a label selector such as app=web,tier!=db' % text)

    def matches(self, labels):
        return all(matches(labels, *term) for term in self._terms)


def matches(labels, key, operator, values):
    """One requirement of a label selector or of a node affinity."""
    value = labels.get(key)
    if operator == "In":
        return value is not None and value in values
    if operator == "NotIn":
        return value is None or value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    try:
        if operator == "Gt":
            return int(value) > int(values[0])
        if operator == "Lt":
            return int(value) < int(values[0])
    except (TypeError, ValueError, IndexError):
        pass
    return False


class Rule:
    """Settings for the Pods that match; see the paragraph above."""

    NAMES = ("namespace", "pod", "selector")

    def __init__(self, name, told):
        told = dict(told)
        self.name = name
        self.namespace = told.pop("namespace", None)
        self.pod = told.pop("pod", None)
        text = told.pop("selector", None)
        self.selector = Selector(text) if text else None
        self.told = {key: value for key, value in told.items() if value is not None}
        self.settings = parse(self.told)
        if not self.settings:
            raise Mistake("the rule sets nothing; it may set %s" % ", ".join(sorted(PARSERS)))

    def applies(self, pod):
        meta = pod["metadata"]
        return ((self.namespace is None or self.namespace == meta["namespace"])
                and (self.pod is None or self.pod == meta["name"])
                and (self.selector is None or self.selector.matches(meta.get("labels") or {})))

    def to_json(self):
        where = {"namespace": self.namespace, "pod": self.pod,
                 "selector": self.selector.text if self.selector else None}
        return {"name": self.name,
                **{key: value for key, value in where.items() if value is not None}, **self.told}


def resolve(pod, rules, defaults):
    """(settings, mistake or None) of a Pod; `rules` from the oldest to the newest."""
    annotations = pod["metadata"].get("annotations") or {}
    told = {key[len(PREFIX):]: value for key, value in annotations.items()
            if key.startswith(PREFIX)}
    result = dict(defaults)
    mistake = None
    try:
        result.update(parse(told))
    except Mistake as found:
        mistake = "annotation " + PREFIX + str(found)
    for rule in rules:
        if rule.applies(pod):
            result.update(rule.settings)
    return result, mistake
