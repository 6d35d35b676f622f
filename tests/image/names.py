# SPDX-License-Identifier: Apache-2.0
"""A name server for one test: answers for the names that it is told, on an address of its own in 127.0.0.0/8."""

import random
import socket
import struct
import threading

PORT = 53  # resolv.conf cannot name another
A, IN, TTL_S = 1, 1, 30
ANSWER, NO_SUCH_NAME = 0x8180, 0x8183


class NameServer(threading.Thread):
    """names: to IPv4 addresses, without the dot at the end. `asked` are the names that it was asked for."""

    def __init__(self, names):
        super().__init__(daemon=True)
        self.names, self.asked = names, []
        self.address = "127.%d.%d.%d" % tuple(random.randrange(1, 255) for _ in range(3))
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((self.address, PORT))
        self.start()

    def run(self):
        while True:
            try:
                query, sender = self.socket.recvfrom(4096)
            except OSError:
                return
            if not query:
                return
            self.socket.sendto(self.answer(query), sender)

    def answer(self, query):
        """RFC 1035, section 4.1: the question again, and one record for it where there is one."""
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        question, kind = query[12:at + 5], struct.unpack("!H", query[at + 1:at + 3])[0]
        name = ".".join(labels).lower()
        self.asked.append(name)
        has_record = name in self.names and kind == A
        head = query[:2] + struct.pack("!5H", ANSWER if name in self.names else NO_SUCH_NAME, 1, int(has_record), 0, 0)
        record = struct.pack("!3HIH", 0xC00C, A, IN, TTL_S, 4) + socket.inet_aton(self.names[name]) if has_record else b""
        return head + question + record

    def stop(self):
        """An empty packet wakes it."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", (self.address, PORT))
        self.join(10)
        self.socket.close()
