# SPDX-License-Identifier: Apache-2.0
"""./tools/bench as it is called. What is measured beside others says little, but that it can be measured is seen."""

import json
import os
import pathlib
import random
import subprocess

import pytest
from container_image import layout

TOP = pathlib.Path(__file__).resolve().parents[2]


def bench(*args, image):
    return subprocess.run([TOP / "tools" / "bench", *args], capture_output=True, text=True,
                          env=dict(os.environ, SLIPWAY_BUILD=str(TOP / "build"), SLIPWAY_IMAGE=str(image)))


@pytest.fixture
def no_image(tmp_path):
    return tmp_path / "none.oci.tar"


@pytest.fixture
def image(tmp_path):
    """An archive with one file in it, that gzip cannot make smaller."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_bytes(random.Random(1).randbytes(3 << 20))
    layout.write(tmp_path / "some.oci.tar", tmp_path / "root", "it:1", "amd64", 0, "1970-01-01T00:00:00Z", {"Labels": {}})
    return tmp_path / "some.oci.tar"


def test_a_quick_run_of_all_of_it_gives_every_figure(image):
    done = bench("--quick", "--json", image=image)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures.pop("quick") == 1
    assert 3 < figures["image_mib"] < 3.01
    assert not [key for key, value in figures.items() if not isinstance(value, (int, float))], figures


def test_the_table_names_what_was_left_out(no_image):
    done = bench("image", image=no_image)
    assert done.returncode == 0, done.stderr
    assert "not measured: there is no" in " ".join(done.stdout.split()) and "<= 10 MiB" in done.stdout


def test_a_file_that_is_no_image_is_told(tmp_path):
    (tmp_path / "other.tar").write_text("this is no archive")
    done = bench("image", "--json", image=tmp_path / "other.tar")
    assert done.returncode == 0 and json.loads(done.stdout)["image_mib"] is None


def test_a_subject_that_is_not_there_is_answered_with_those_that_are(no_image):
    done = bench("speed", image=no_image)
    assert done.returncode == 2
    assert 'there is no subject "speed"; there are decode, idle,' in done.stderr
