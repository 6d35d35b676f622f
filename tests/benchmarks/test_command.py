# SPDX-License-Identifier: Apache-2.0
"""./tools/bench as it is called; the two subjects that need no cluster."""

import json
import os
import pathlib
import subprocess

TOP = pathlib.Path(__file__).resolve().parents[2]


def bench(*args):
    return subprocess.run([TOP / "tools" / "bench", *args], capture_output=True, text=True,
                          env=dict(os.environ, SLIPWAY_BUILD=str(TOP / "build")))


def test_what_was_measured_is_a_number_and_the_rest_is_null():
    done = bench("--quick", "--json", "decode")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures.pop("quick") == 1
    measured = {key for key, value in figures.items() if value is not None}
    assert measured == {"decode_mb_per_s", "decode_jansson_mb_per_s"}
    assert figures["decode_mb_per_s"] > figures["decode_jansson_mb_per_s"] > 0


def test_the_table_names_what_was_left_out():
    done = bench("image")
    assert done.returncode == 0, done.stderr
    assert "not measured" in done.stdout and "<= 10 MiB" in done.stdout


def test_a_subject_that_is_not_there_is_answered_with_those_that_are():
    done = bench("speed")
    assert done.returncode == 2
    assert 'there is no subject "speed"; there are decode, idle,' in done.stderr
