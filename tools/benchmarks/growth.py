# SPDX-License-Identifier: Apache-2.0
"""What one change of a Deployment costs slipway, when there are more and more Deployments in its namespace, and more and more
other namespaces. The change is an annotation: it is seen and thought about, and nothing is written."""

import contextlib
import math
import re
import shutil
import signal
import subprocess
import time

from benchmarks import proc
from benchmarks.figures import Figure, median
from benchmarks.stand import DEPLOYMENTS, NAMESPACE, Failed, cluster, fill, first_core_of, make_namespace, ready_count, start_slipway, until

SUMMARY = "cost of one change with 100 to 10 000 Deployments, 1 to 1 000 namespaces"
EACH = 20  # Deployments of a group
PACE_S = 0.05  # so that each change is thought about by itself


class Instructions:
    """Those that a process executes meanwhile; where the kernel does not let us count, nanoseconds of processor time."""

    unit = None

    def __init__(self, pid):
        self.pid = pid

    @classmethod
    def find_unit(cls):
        done = shutil.which("perf") and subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", "true"], capture_output=True, text=True)
        cls.unit = "instructions" if done and re.search(r"^\d+,", done.stderr, re.M) else "ns of processor time"

    @contextlib.contextmanager
    def counted(self):
        """Yields a list to which the number is added at the end."""
        found = []
        if self.unit != "instructions":
            before = proc.cpu_ns(self.pid)
            yield found
            found.append(proc.cpu_ns(self.pid) - before)
            return
        perf = subprocess.Popen(["perf", "stat", "-x,", "-e", "instructions:u", "-p", str(self.pid)], stderr=subprocess.PIPE, text=True)
        time.sleep(0.3)
        yield found
        perf.send_signal(signal.SIGINT)
        found.append(int(re.search(r"^(\d+),", perf.communicate()[1], re.M).group(1)))


def cost_of_a_change(bench, client, pid, rounds):
    """Median over rounds of many changes each."""
    changes = bench.pick(20, 50)
    path = DEPLOYMENTS % NAMESPACE + "/g0000-000"
    costs = []
    for number in range(rounds):
        with Instructions(pid).counted() as found:
            for change in range(changes):
                client.patch(path, {"metadata": {"annotations": {"bench/change": "%d-%d" % (number, change)}}})
                time.sleep(PACE_S)
        costs.append(found[0] / changes)
    return median(costs)


def rest(client, slipway, groups):
    until(lambda: ready_count(client) == groups, lambda: "all groups are Ready: %d of %d" % (ready_count(client), groups), 1800, 1)
    if not proc.until_quiet(slipway.process.pid):
        raise Failed("slipway does not come to rest")


def grow(bench, sizes, add, group_count):
    """The cost at each size; add(client, from, to) makes what is missing to the next."""
    costs = []
    with cluster(bench) as stage:
        stage.cluster.kubelets("PATCH", "/settings", {"start": "0ms", "stop": "0ms"})
        for before, size in zip([0, *sizes], sizes):
            add(stage.client, before, size)
            # A new process for each size: what an earlier one has learnt and kept shall not matter.
            slipway = start_slipway(stage, "slipway-%d" % size)
            first_core_of(slipway)
            rest(stage.client, slipway, group_count(size))
            costs.append(cost_of_a_change(bench, stage.client, slipway.process.pid, bench.pick(3, 5)))
            bench.say("%d: %.0f %s a change" % (size, costs[-1], Instructions.unit))
            slipway.stop()
    return costs


def told(sizes, costs, what):
    return ", ".join("%d %s: %.0f" % (size, what, cost) for size, cost in zip(sizes, costs))


def measure(bench):
    Instructions.find_unit()
    sizes, spaces = bench.pick(([100, 1000], [1, 100]), ([100, 1000, 10000], [1, 100, 1000]))
    bench.say("one namespace with %s Deployments" % ", ".join(map(str, sizes)))

    def add_groups(client, before, size):
        fill(bench, client, (size - before) // EACH, EACH, first=before // EACH, is_marked=True, atRest="Running")

    costs = grow(bench, sizes, add_groups, lambda size: size // EACH)
    times = sizes[-1] / sizes[0]
    yield Figure("growth_size", costs[-1] / costs[0], "%s a change of one Deployment; %s" % (Instructions.unit, told(sizes, costs, "Deployments")),
                 "n log n would be %.0f times" % (times * math.log(sizes[-1]) / math.log(sizes[0])))
    bench.say("%s namespaces" % ", ".join(map(str, spaces)))

    def add_spaces(client, before, size):
        names = [NAMESPACE if number == 0 else "space-%d" % number for number in range(before, size)]
        for name in names:
            if name != NAMESPACE:
                make_namespace(client, name)
        fill(bench, client, size - before, EACH // 2, namespaces=names, first=before, is_marked=True, atRest="Running")

    costs = grow(bench, spaces, add_spaces, lambda size: size)
    yield Figure("growth_namespaces", costs[-1] / costs[0], "%s a change; %s, each with %d Deployments" % (
        Instructions.unit, told(spaces, costs, "namespaces"), EACH // 2), "1 namespace: 1")
