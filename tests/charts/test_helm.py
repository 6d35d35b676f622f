# SPDX-License-Identifier: Apache-2.0
"""Where there is no helm and none can be built, whoever needs it is told."""

import os
import subprocess

from chart import TOP, helm

PYTHON = "/usr/bin/python3"


def path(**env):
    return subprocess.run([PYTHON, TOP / "tools" / "helm", "--path"], env=dict(os.environ, **env), capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)


def test_without_go_it_says_what_is_missing_and_fails(tmp_path):
    done = path(XDG_CACHE_HOME=str(tmp_path), PATH=str(tmp_path))
    assert done.returncode == 1 and "no go on the PATH" in done.stderr and done.stdout == "", done
    assert sorted(entry.name for entry in (tmp_path / "slipway" / "helm").iterdir()) == ["lock"], "nothing half made is left"


def test_one_of_your_own_is_taken_if_it_is_one(tmp_path):
    own = tmp_path / "helm"
    done = path(SLIPWAY_HELM=str(own))
    assert done.returncode == 1 and str(own) in done.stderr
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    assert path(SLIPWAY_HELM=str(own)).stdout == "%s\n" % own


def test_it_is_the_version_that_is_named_in_one_place():
    version = next(line for line in (TOP / "tools" / "helm").read_text().splitlines() if line.startswith("VERSION = ")).split('"')[1]
    assert helm("version", "--template", "{{.Version}}").stdout == version
