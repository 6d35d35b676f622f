# SPDX-License-Identifier: Apache-2.0
"""Who has nothing to do shall sleep: memory and wake-ups of a slipway that nobody asks for anything."""

import time

from benchmarks import proc
from benchmarks.figures import Figure, median, spread
from benchmarks.stand import Failed, cluster, start_slipway

SUMMARY = "memory and wake-ups when nothing happens"


def measure(bench):
    runs, seconds = bench.pick((1, 10), (3, 60))
    resident, shared, wakeups = [], [], []
    for number in range(runs):
        with cluster(bench) as stage:
            slipway = start_slipway(stage)
            pid = slipway.process.pid
            if not proc.until_quiet(pid):
                raise Failed("slipway does not come to rest:\n" + slipway.log.read_text())
            resident.append(proc.rss_mib(pid))
            shared.append(proc.pss_mib(pid))
            bench.say("run %d of %d: %d s of rest" % (number + 1, runs, seconds))
            before = proc.sleeps(pid)
            time.sleep(seconds)
            wakeups.append((proc.sleeps(pid) - before) / seconds)
            sim_mib = stage.at.resident_mib()
    yield Figure("rss_idle_mib", median(resident),
                 "VmRSS with coordination, pausing, events as shared objects, when it has come to rest; %s; PSS %.1f MiB" % (
                     spread(resident, 1), median(shared)),
                 "slipway-sim itself: %.1f MiB" % sim_mib)
    yield Figure("idle_wakeups_per_s", median(wakeups),
                 "voluntary context switches of all threads (/proc/PID/task/*/status) in %d s; %s" % (seconds, spread(wakeups)))
