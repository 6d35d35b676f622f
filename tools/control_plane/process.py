# SPDX-License-Identifier: Apache-2.0
"""Background processes: started, recognised again later, and stopped without hitting a stranger.

A number in a file does not name a process: after a reboot, or after enough other processes, it
belongs to somebody else. So a process is known by three things: its number, the time it started
(as the kernel counts it) and the boot in which it did. Signals go through a file descriptor of
the process, which cannot come to mean another one between the look and the shot.

Every process started here also carries the folder of its instance in its environment, so that one
whose number was never written down (the starter was killed in between) is still found.
"""

import os
import select
import signal
import subprocess

MARK = "SLIPWAY_CONTROL_PLANE_MEMBER"


def boot_id():
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def start_ticks(pid):
    """When the process started, in the kernel's ticks; None where there is none or it has ended."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            # The name in brackets may hold anything, so count from the last bracket.
            fields = file.read().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    if fields[0] in "ZX":
        return None
    return int(fields[19])


class Process:
    def __init__(self, pid, ticks, boot):
        self.pid = pid
        self.ticks = ticks
        self.boot = boot

    @classmethod
    def from_json(cls, value):
        return cls(value["pid"], value["ticks"], value["boot"])

    def to_json(self):
        return {"pid": self.pid, "ticks": self.ticks, "boot": self.boot}

    def is_alive(self):
        return self.boot == boot_id() and start_ticks(self.pid) == self.ticks

    def uptime_s(self):
        with open("/proc/uptime") as file:
            now = float(file.read().split()[0])
        return max(0.0, now - self.ticks / os.sysconf("SC_CLK_TCK"))

    def resident_kib(self):
        try:
            with open("/proc/%d/status" % self.pid) as file:
                for line in file:
                    if line.startswith("VmRSS:"):
                        return int(line.split()[1])
        except OSError:
            pass
        return 0

    def stop(self, grace_s=0.0):
        """Ends the process, politely for `grace_s` and then not; returns when it is gone."""
        try:
            fd = os.pidfd_open(self.pid)
        except OSError:
            return
        try:
            # Looked at only now: from here on the descriptor means the process we looked at.
            if not self.is_alive():
                return
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            if grace_s > 0:
                _send(fd, signal.SIGTERM)
                if poll.poll(grace_s * 1000):
                    return
            _send(fd, signal.SIGKILL)
            poll.poll(10_000)
        finally:
            os.close(fd)


def _send(fd, number):
    try:
        signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        pass


def spawn(argv, log, folder):
    """Starts a member of the instance in `folder`; all that it says goes to the file `log`.

    Returns it twice: as what can be written down, and as the child of this process.
    """
    env = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": folder,
        "LANG": "C.UTF-8",
        MARK: folder,
    }
    with open(log, "ab") as out:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            cwd=folder, env=env, start_new_session=True, close_fds=True)
    ticks = start_ticks(child.pid)
    # Already gone: no number of ticks will match, so it counts as ended.
    return Process(child.pid, -1 if ticks is None else ticks, boot_id()), child


def members(folder):
    """Every process that was started for the instance in `folder`, written down or not."""
    found = []
    wanted = ("%s=%s" % (MARK, folder)).encode()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open("/proc/%s/environ" % name, "rb") as file:
                environ = file.read().split(b"\0")
        except OSError:
            continue
        ticks = start_ticks(int(name))
        if wanted in environ and ticks is not None:
            found.append(Process(int(name), ticks, boot_id()))
    return found
