# SPDX-License-Identifier: Apache-2.0
"""Ports for those who must be told one before they listen."""

import random
import socket

FIRST = 10000


def _first_of_connections():
    """The kernel gives ports from here on to whoever connects to somebody."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        return int(file.read().split()[0])


def free_port():
    """Nobody listens on it now, and no connection will take it before somebody does."""
    last = max(_first_of_connections(), FIRST + 1000)
    while True:
        port = random.randrange(FIRST, last)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
