# SPDX-License-Identifier: Apache-2.0
"""How many steps a second the simulation of whole slipway in virtual time does (tests/sim)."""

import re
import subprocess

from benchmarks.figures import Figure, median, spread
from benchmarks.stand import BUILD, TOP, Missing, run

SUMMARY = "steps a second of the simulation of whole slipway in virtual time"
KEYS = ("sim_steps_per_s",)
PROGRAM = "tests/sim/sim_world"


def measure(bench):
    if not (TOP / "tests" / "sim" / "sim_world.c").exists():
        raise Missing("there is no tests/sim/sim_world.c")
    run("ninja", "-C", BUILD, PROGRAM)
    runs, steps = bench.pick((1, 50 * 1000), (3, 500 * 1000))
    rates = []
    for number in range(runs):
        bench.say("run %d of %d: %d steps" % (number + 1, runs, steps))
        done = subprocess.run([BUILD / PROGRAM, "--steps", str(steps), "--bug-cases", "0"], capture_output=True, text=True)
        found = re.search(r"(\d+) steps in [0-9.]+ s: (\d+) steps/s", done.stdout)
        assert done.returncode == 0 and found, "sim_world: %s%s" % (done.stdout[-2000:], done.stderr[-2000:])
        rates.append(float(found.group(2)))
    yield Figure("sim_steps_per_s", median(rates), "sim_world --steps %d; %s" % (steps, spread(rates, 0)))
