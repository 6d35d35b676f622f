# SPDX-License-Identifier: Apache-2.0
"""The exception of these tools: what went wrong, where, and what to do about it.

Whoever raises it has something to say to the person at the terminal; anything else that escapes
is a bug and keeps its traceback.
"""

import os


class Problem(Exception):
    """`text` says what and where, `todo` what to do; `log` is the file whose end tells more."""

    def __init__(self, text, todo=None, log=None, lines=15):
        super().__init__(text)
        self.text = text
        self.todo = todo
        self.log = log
        self.lines = lines

    def __str__(self):
        parts = []
        if self.log:
            end = last_lines(self.log, self.lines)
            if end:
                parts.append("the last lines of %s:\n%s\n" % (self.log, end))
        parts.append(self.text)
        if self.todo:
            parts.append("  " + self.todo)
        return "\n".join(parts)


def last_lines(path, count, limit=400):
    """The last `count` lines of a file, each cut to `limit` characters; "" where there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 65536))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    lines = [line.rstrip() for line in text.replace("\r", "\n").split("\n") if line.strip()]
    return "\n".join("    " + line[:limit] for line in lines[-count:])
