# SPDX-License-Identifier: Apache-2.0
"""Where this machine gets Debian from: the entry of apt's configuration, both forms read.

Only looked at, never changed: the build asks the same archive, verified with the same keys, for
the source package, in an apt configuration of its own. The suite of the entry does not matter,
since every mirror of the archive holds them all.
"""

import glob
import os
import re

SUITES = {"bookworm", "trixie", "forky", "sid", "oldoldstable", "oldstable", "stable", "testing",
          "unstable"}


def find(root="/etc/apt"):
    """(URI, value of Signed-By or "") of the Debian archive, or None."""
    for path in [os.path.join(root, "sources.list")] + sorted(
            glob.glob(os.path.join(root, "sources.list.d", "*"))):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue
        if path.endswith(".list"):
            entries = _one_line(text)
        elif path.endswith(".sources"):
            entries = _deb822(text)
        else:
            continue
        for uri, suites, components, signed_by in entries:
            if SUITES & set(suites) and "main" in components and "security" not in uri:
                return uri, signed_by
    return None


def _one_line(text):
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        found = re.match(r"deb(?:-src)?\s+(?:\[([^]]*)\]\s*)?(\S+)\s+(\S+)\s+(.*)", line)
        if found:
            options = dict(word.partition("=")[::2] for word in (found[1] or "").split())
            yield (found[2], [found[3]], found[4].split(),
                   options.get("signed-by", "").replace(",", " "))


def _deb822(text):
    for stanza in re.split(r"\n[ \t]*\n", text):
        fields = {}
        name = None
        for line in stanza.split("\n"):
            if line.startswith("#"):
                continue
            if line[:1] in (" ", "\t") and name:
                # A key may stand inside; its lines are kept as they are.
                fields[name] += "\n" + line
                continue
            name, colon, value = line.partition(":")
            name = name.strip().lower()
            if colon:
                fields[name] = value.strip()
            else:
                name = None
        if fields.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        uris = fields.get("uris", "").split()
        if uris and "types" in fields:
            yield (uris[0], fields.get("suites", "").split(),
                   fields.get("components", "").split(), fields.get("signed-by", ""))
