# SPDX-License-Identifier: Apache-2.0
"""What Debian's copyright files say, in the words of SPDX.

Those in the machine-readable form (https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/) name a licence for each
group of files. A name that SPDX has too is given as SPDX writes it; for any other, and for a file in no such form, the text
itself goes into the document. Nothing is guessed.
"""

import re

from dpkg import paragraphs

SAME = {name.lower(): name for name in (
    "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "CC-BY-4.0", "FSFAP", "ISC", "MIT", "MPL-1.1", "MPL-2.0", "Zlib")}
OTHER = {"apache-2": "Apache-2.0", "expat": "MIT"}
GNU = re.compile(r"(AGPL|LGPL|GPL)-(\d)(?:\.(\d))?(\+)?")


def _known(name):
    gnu = GNU.fullmatch(name)
    if gnu:
        return "%s-%s.%s-%s" % (gnu[1], gnu[2], gnu[3] or "0", "or-later" if gnu[4] else "only")
    return SAME.get(name.lower()) or OTHER.get(name.lower())


def _choices(names):
    """"A and B or C" as [[A, B], [C]]. With a comma it means something else; then all of it is one name."""
    names = " ".join(names.split())
    return [[names]] if "," in names else [choice.split(" and ") for choice in names.split(" or ")]


def _reference(label):
    return "LicenseRef-" + re.sub(r"[^A-Za-z0-9.-]+", "-", label).strip("-")


def _plain(text):
    """The text of a field: one blank less before each line, and "." for an empty one."""
    return "\n".join("" if line.strip() == "." else line[1:] for line in text.split("\n")[1:])


class Licence:
    """expression: what SPDX calls licenseDeclared; texts: those of the LicenseRefs in it; holders: copyrightText, or None."""

    def __init__(self, package, text):
        self.texts, self.holders = {}, None
        found = list(paragraphs(text))
        groups = [fields for fields in found if "Files" in fields and "License" in fields and not self._is_packaging(fields)]
        if not (found and "Format" in found[0] and groups):
            self.expression = _reference("%s-copyright" % package)
            self.texts[self.expression] = text
            return
        texts = {}
        for fields in found:
            name, _, own = fields.get("License", "").partition("\n")
            if own:
                texts.setdefault(name.strip(), _plain("\n" + own))

        def single(name):
            if _known(name):
                return _known(name)
            reference = _reference("%s-%s" % (package, name))
            self.texts[reference] = texts.get(name) or text
            return reference

        terms = []
        for fields in groups:
            choices = [[single(name) for name in choice] for choice in _choices(fields["License"].partition("\n")[0])]
            terms += choices[0] if len(choices) == 1 else ["(%s)" % " OR ".join(" AND ".join(choice) for choice in choices)]
        self.expression = " AND ".join(dict.fromkeys(terms))
        lines = dict.fromkeys(line.strip() for fields in groups for line in fields.get("Copyright", "").split("\n") if line.strip())
        self.holders = "\n".join(lines) or None

    @staticmethod
    def _is_packaging(fields):
        """What Debian's maintainers wrote to build it is in no file of the image."""
        return all(pattern.startswith("debian/") for pattern in fields["Files"].split())
