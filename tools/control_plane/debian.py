# SPDX-License-Identifier: Apache-2.0
"""Kubernetes 1.20.2 from Debian's packages: what its build needs, and its steps (recipe-debian)."""

import os
import subprocess

from . import sources
from .problem import Problem

VERSION = "v1.20.2"
HERE = os.path.dirname(os.path.abspath(__file__))
# 2.7 GB at most at once: the tree, Go and its cache of objects, the results.
NEEDED_DISK = 4 * 10 ** 9
TAKES = "3 to 6 minutes on two cores"

STEPS = (
    ("fetch", "fetching source and packages"),
    ("unpack", "unpacking"),
    ("generate", "generating code"),
    ("apiserver", "compiling kube-apiserver"),
    ("controller-manager", "compiling kube-controller-manager"),
)


def check(version):
    """What the build needs is on the machine afterwards; or Problem."""
    # It says what it installs, and asks for sudo's password where it needs one: not into a log.
    tool = os.path.join(os.path.dirname(HERE), "packages")
    if subprocess.run([tool, "control-plane"]).returncode != 0:
        raise Problem("Debian packages that the build needs are missing",
                      "install them by hand; %s --list control-plane names them" % tool)


def command(step):
    return [os.path.join(HERE, "recipe-debian"), step]


def prepare(work):
    found = sources.find()
    if not found:
        raise Problem(
            "no entry for the Debian archive (component main) in /etc/apt/sources.list or "
            "/etc/apt/sources.list.d",
            "the build needs Debian's source package kubernetes %s; on another system build a "
            "release from its Go modules (tools/control-plane build --version), or point "
            "KUBEBUILDER_ASSETS at a folder with the programs" % VERSION[1:])
    uri, signed_by = found
    os.makedirs(os.path.join(work, "apt"))
    with open(os.path.join(work, "apt", "debian.sources"), "w") as file:
        # This suite whatever the machine's: the recipe is for its version of kubernetes.
        file.write("Types: deb deb-src\nURIs: %s\nSuites: bookworm bookworm-updates\n"
                   "Components: main\n" % uri)
        if signed_by:
            file.write("Signed-By: %s\n" % signed_by)
