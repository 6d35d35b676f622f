# SPDX-License-Identifier: Apache-2.0
"""./tools/bench as it is called. What is measured beside others says little, but that it can be measured is seen."""

import json
import os
import pathlib
import subprocess

TOP = pathlib.Path(__file__).resolve().parents[2]


def bench(*args):
    return subprocess.run([TOP / "tools" / "bench", *args], capture_output=True, text=True,
                          env=dict(os.environ, SLIPWAY_BUILD=str(TOP / "build")))


def test_a_quick_run_of_all_of_it_gives_every_figure():
    done = bench("--quick", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures.pop("quick") == 1
    assert figures.pop("image_mib") is None, "SLIPWAY_IMAGE names none here"
    assert not [key for key, value in figures.items() if not isinstance(value, (int, float))], figures


def test_the_table_names_what_was_left_out():
    done = bench("image")
    assert done.returncode == 0, done.stderr
    assert "not measured" in done.stdout and "<= 10 MiB" in done.stdout


def test_a_subject_that_is_not_there_is_answered_with_those_that_are():
    done = bench("speed")
    assert done.returncode == 2
    assert 'there is no subject "speed"; there are decode, idle,' in done.stderr
