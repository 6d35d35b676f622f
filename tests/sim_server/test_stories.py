# SPDX-License-Identifier: Apache-2.0
"""What ./tools/run plays by default; the same stories on the real control plane are a matter of --real."""

import subprocess

import pytest

from conftest import TOP


def run(*arguments):
    return subprocess.run([TOP / "tools" / "run", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400)


@pytest.mark.parametrize("story, told", [
    ("shop", "At most 1 rolled at a time"),
    ("failure", "Nothing was lost"),
    ("leader", "No turn was lost"),
])
def test_a_story_ends_well(story, told):
    done = run(story)
    assert done.returncode == 0 and told in done.stdout, done.stdout + done.stderr


def test_what_there_is_to_play():
    assert [line.split()[0] for line in run("--list").stdout.splitlines()] == ["shop", "failure", "leader"]
    assert 'there is no story "x"; there are shop, failure, leader' in run("x").stderr
