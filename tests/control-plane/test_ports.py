# SPDX-License-Identifier: Apache-2.0
"""Ports that are given before anybody listens: never the same to two who live."""

import subprocess
import sys

from planes import TOP
from control_plane import ports

OTHERS = "import sys; sys.path.insert(0, sys.argv[1]); from control_plane.ports import free_port; print(*[free_port() for _ in range(500)], flush=True); input()"


def test_two_processes_are_never_given_the_same_port():
    other = subprocess.Popen([sys.executable, "-B", "-c", OTHERS, str(TOP / "tools")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        theirs = [int(port) for port in other.stdout.readline().split()]
        ours = [ports.free_port() for _ in range(2000)]
        assert len(theirs) == len(set(theirs)) == 500
        assert len(ours) == len(set(ours)) and not set(ours) & set(theirs)
    finally:
        other.communicate("\n")


def test_who_has_ended_keeps_no_port(monkeypatch):
    def given_to_one_who_ends():
        code = "import sys; sys.path.insert(0, sys.argv[1]); from control_plane.ports import free_port; print(free_port())"
        return int(subprocess.check_output([sys.executable, "-B", "-c", code, str(TOP / "tools")]))
    port = given_to_one_who_ends()
    choices = iter([port])
    monkeypatch.setattr(ports.random, "randrange", lambda first, last: next(choices))
    assert ports.free_port() == port
