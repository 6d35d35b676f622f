# SPDX-License-Identifier: Apache-2.0
"""Ports for those who must be told one before they listen."""

import fcntl
import os
import random
import socket
import tempfile

FIRST = 10000
# One file of all processes of a user; byte N is locked by the process that was given port N, until that process ends.
GIVEN = os.path.join(tempfile.gettempdir(), "slipway-ports-%d" % os.getuid())

_given = None


def _first_of_connections():
    """The kernel gives ports from here on to whoever connects to somebody."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        return int(file.read().split()[0])


def _take(port):
    """False where it was given to somebody who lives; else nobody will be given it while we do."""
    global _given
    if _given is None:
        # Never closed: POSIX gives back all locks of a process on a file with the first descriptor of it that is closed.
        _given = os.open(GIVEN, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), set()
    descriptor, mine = _given
    if port in mine:  # a lock would be given to its holder again
        return False
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    mine.add(port)
    return True


def free_port():
    """Nobody listens on it now, no connection will take it, and no other caller on this machine is given it while this process lives."""
    last = max(_first_of_connections(), FIRST + 1000)
    while True:
        port = random.randrange(FIRST, last)
        if not _take(port):
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
