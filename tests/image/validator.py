# SPDX-License-Identifier: Apache-2.0
"""SPDX's own validator, which Debian does not have: from PyPI, into a folder of its own outside the repository, once."""

import fcntl
import os
import pathlib
import subprocess

PACKAGE = "spdx-tools==0.8.5"  # https://github.com/spdx/tools-python
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "slipway"
FOLDER = CACHE / PACKAGE.replace("==", "-")


def _install():
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "spdx-tools.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (FOLDER / "made").exists():
            return
        for command in (["/usr/bin/python3", "-m", "venv", "--clear", FOLDER],
                        [FOLDER / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE]):
            done = subprocess.run(command, stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            assert done.returncode == 0, "%s cannot be installed: without PyPI the bill of materials is not validated\n%s" % (PACKAGE, done.stdout)
        (FOLDER / "made").touch()


def validate(path):
    """(exit status, what it found)."""
    _install()
    done = subprocess.run([FOLDER / "bin" / "pyspdxtools", "--infile", path, "--version", "SPDX-2.3"], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.returncode, done.stdout
