# SPDX-License-Identifier: Apache-2.0
"""10 000 Deployments in 500 groups: what they take, and how long a slipway that starts needs to know them all."""

import time

from benchmarks import proc
from benchmarks.figures import Figure, median, spread
from benchmarks.stand import NAMESPACE, Failed, cluster, fill, make_namespace, readyz, ready_count, start_slipway, until

SUMMARY = "memory with 10 000 Deployments, and the time to be ready with them"
IN_A_NAMESPACE = 10  # groups


def settle(bench, stage, slipway, groups):
    """Until it has written all that there is to write."""
    until(lambda: ready_count(stage.client) == groups, lambda: "all groups are Ready: %d of %d" % (ready_count(stage.client), groups), 1800, 1)
    if not proc.until_quiet(slipway.process.pid):
        raise Failed("slipway does not come to rest")


def time_to_ready(stage, name):
    """(slipway, seconds from exec): asked again and again, without a pause that would be part of the figure."""
    slipway = stage.start_slipway(name)
    begin = slipway.started
    while not readyz(slipway):
        if slipway.process.poll() is not None or time.monotonic() - begin > 60:
            raise Failed("slipway is not ready:\n" + slipway.log.read_text())
        time.sleep(0.002)
    return slipway, time.monotonic() - begin


def measure(bench):
    groups, each, runs = bench.pick((50, 20, 2), (500, 20, 5))
    with cluster(bench) as stage:
        stage.cluster.kubelets("PATCH", "/settings", {"start": "0ms", "stop": "0ms"})
        bench.say("make %d Deployments in %d groups" % (groups * each, groups))
        namespaces = [NAMESPACE, *("space-%d" % number for number in range(1, groups // IN_A_NAMESPACE))]
        for name in namespaces[1:]:
            make_namespace(stage.client, name)
        fill(bench, stage.client, groups, each, namespaces, atRest="Running")
        slipway = start_slipway(stage, "first")
        bench.say("wait until all groups are Ready")
        settle(bench, stage, slipway, groups)
        first_mib, first_peak_mib = proc.rss_mib(slipway.process.pid), proc.peak_mib(slipway.process.pid)
        slipway.stop()
        seconds, resident, shared = [], [], []
        for number in range(runs):
            bench.say("start %d of %d" % (number + 1, runs))
            slipway, taken = time_to_ready(stage, "again-%d" % number)
            seconds.append(taken)
            settle(bench, stage, slipway, groups)
            resident.append(proc.rss_mib(slipway.process.pid))
            shared.append(proc.pss_mib(slipway.process.pid))
            slipway.stop()
        sim_mib = stage.at.resident_mib()
    what = "%d Deployments in %d groups in %d namespaces%s" % (groups * each, groups, len(namespaces),
                                                              " (quick: not 10 000)" if bench.is_quick else "")
    yield Figure("rss_10k_mib", median(resident), "%s, after a start and at rest: VmRSS; %s; PSS %.1f MiB; the process that saw "
                 "them first and wrote to each: %.1f MiB, at its peak %.1f" % (what, spread(resident, 1), median(shared), first_mib, first_peak_mib),
                 "slipway-sim, which has the same as whole objects with their Pods: %.0f MiB" % sim_mib)
    yield Figure("ready_10k_s", median(seconds), "%s: from exec to the first 200 of /readyz; %s" % (what, spread(seconds)))
