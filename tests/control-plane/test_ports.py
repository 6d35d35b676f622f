# SPDX-License-Identifier: Apache-2.0
"""Ports that are given before anybody listens: never the same to two who live."""

import subprocess
import sys

from planes import TOP
from control_plane import ports

# One who is given so many ports, and lives until its standard input ends.
OTHER = """
import sys
sys.path.insert(0, sys.argv[1])
from control_plane.ports import free_port
print(*[free_port() for _ in range(int(sys.argv[2]))], flush=True)
sys.stdin.read()
"""


def other(count):
    process = subprocess.Popen([sys.executable, "-B", "-c", OTHER, str(TOP / "tools"), str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, [int(port) for port in process.stdout.readline().split()]


def test_two_processes_are_never_given_the_same_port():
    process, theirs = other(500)
    try:
        ours = [ports.free_port() for _ in range(2000)]
        assert len(theirs) == len(set(theirs)) == 500
        assert len(ours) == len(set(ours)) and not set(ours) & set(theirs)
    finally:
        process.communicate()


def test_who_has_ended_keeps_no_port(monkeypatch):
    process, [port] = other(1)
    process.communicate()
    choices = iter([port])
    monkeypatch.setattr(ports.random, "randrange", lambda first, last: next(choices))
    assert ports.free_port() == port
