# SPDX-License-Identifier: Apache-2.0
"""When a client and a server on this machine sent each other bytes, by the kernel's clock: a server that has one thread and is
busy reads a request later than it came, and encrypts and sends its answer later than it had it; neither is the client's time.

Run as a process of its own, with the server's port and a file: for each packet with bytes to or from that port a line
"NS to|from PORT", CLOCK_MONOTONIC and the client's port, until SIGTERM. Needs CAP_NET_RAW, which root has. Its exit code is 1
where the kernel had no room for a packet.
"""

import bisect
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time

SO_TIMESTAMPNS = 35
SOL_PACKET, PACKET_STATISTICS = 263, 6
PACKET_OUTGOING = 4
ETH_P_ALL, ETH_P_IP = 3, 0x0800  # the kernel shows what goes out to those only who listen to all protocols


def capture(port, path):
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
    wire.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024 * 1024)
    wire.bind(("lo", ETH_P_ALL))
    wall_ahead = time.time_ns() - time.monotonic_ns()
    done = []
    signal.signal(signal.SIGTERM, lambda *_: done.append(True))
    wire.settimeout(0.2)
    print("ready", flush=True)
    with open(path, "w") as out:
        while not done:
            try:
                head, notes, _, address = wire.recvmsg(120, 64)
            except TimeoutError:
                continue
            is_ours = address[1] == ETH_P_IP and address[2] == PACKET_OUTGOING
            found = direction(head, port) if is_ours else None
            if found and notes:
                seconds, ns = struct.unpack("qq", notes[0][2][:16])
                out.write("%d %s %d\n" % (seconds * 1000000000 + ns - wall_ahead, *found))
    _, dropped = struct.unpack("II", wire.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    return 1 if dropped else 0


def direction(packet, port):
    """("to" or "from", the other port) where this is TCP with bytes to or from the port; else None."""
    head = (packet[0] & 15) * 4
    if len(packet) < head + 20 or packet[9] != socket.IPPROTO_TCP:
        return None
    source, target = struct.unpack_from("!HH", packet, head)
    length = struct.unpack_from("!H", packet, 2)[0] - head - (packet[head + 12] >> 4) * 4
    if length <= 0:
        return None
    return ("to", source) if target == port else ("from", target) if source == port else None


class Wire:
    """with Wire(port, file): ...; then sent_before() and received_after() tell. is_open False: the kernel does not let us."""

    def __init__(self, port, path):
        self.path = path
        self.process = subprocess.Popen([sys.executable, "-B", pathlib.Path(__file__), str(port), path], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.is_open = self.process.stdout.readline() == "ready\n"
        self.sent, self.received = {}, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        code = self.process.wait()
        self.process.stdout.close()
        if self.is_open:
            assert code == 0, "packets were lost, so that nothing is known of who sent when"
            self.sent, self.received = read(self.path)

    def sent_before(self, client, ns):
        """When the client with that port sent its last bytes before ns; None: not seen."""
        times = self.sent.get(client, [])
        at = bisect.bisect_right(times, ns)
        return times[at - 1] if at else None

    def received_after(self, client, ns):
        """When the server first sent bytes to the client with that port, not before ns; None: not seen."""
        times = self.received.get(client, [])
        at = bisect.bisect_left(times, ns)
        return times[at] if at < len(times) else None


def read(path):
    """(what clients sent, what they were sent): the times in order, by the client's port."""
    found = {"to": {}, "from": {}}
    with open(path) as file:
        for line in file:
            ns, way, client = line.split()
            found[way].setdefault(int(client), []).append(int(ns))
    for times in (*found["to"].values(), *found["from"].values()):
        times.sort()
    return found["to"], found["from"]


if __name__ == "__main__":
    try:
        sys.exit(capture(int(sys.argv[1]), sys.argv[2]))
    except PermissionError:
        sys.exit(os.EX_NOPERM)
