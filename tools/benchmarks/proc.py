# SPDX-License-Identifier: Apache-2.0
"""What the kernel says of a process."""

import os
import time

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def _field(path, name):
    with open(path) as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1])
    raise ValueError("%s has no %s" % (path, name))


def rss_mib(pid):
    return _field("/proc/%d/status" % pid, "VmRSS") / 1024


def peak_mib(pid):
    """The most that was ever resident."""
    return _field("/proc/%d/status" % pid, "VmHWM") / 1024


def pss_mib(pid):
    """Pages that others also have count in parts."""
    return _field("/proc/%d/smaps_rollup" % pid, "Pss") / 1024


def cpu_s(pid):
    """User and system time of all threads, to a tick of the kernel (10 ms)."""
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def _schedstat(pid, field):
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task)) as file:
            total += int(file.read().split()[field])
    return total


def cpu_ns(pid):
    """The same to the nanosecond, by the scheduler; of the threads that still live."""
    return _schedstat(pid, 0)


def waited_ns(pid):
    """How long its threads were ready to run while others had the core."""
    return _schedstat(pid, 1)


def sleeps(pid):
    """How often a thread of it went to sleep: each is woken once later."""
    return sum(_field("/proc/%d/task/%s/status" % (pid, task), "voluntary_ctxt_switches")
               for task in os.listdir("/proc/%d/task" % pid))


def until_quiet(pid, for_s=1.0, timeout_s=300):
    """Until it has used at most 1 % of a core for so long. True where that came."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        before = cpu_ns(pid)
        time.sleep(for_s)
        if cpu_ns(pid) - before < for_s * 1e9 / 100:
            return True
    return False
