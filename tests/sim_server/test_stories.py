# SPDX-License-Identifier: Apache-2.0
"""What ./tools/run plays."""

import os
import re
import signal
import subprocess

import pytest

from conftest import TOP


def run(*arguments):
    return subprocess.run([TOP / "tools" / "run", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400)


@pytest.mark.parametrize("story, told", [
    ("shop", "At most 1 rolled at a time"),
    ("failure", "Nothing was lost"),
    ("leader", "No turn was lost"),
    ("stepping", "All 10 Pods are of version 2.0.0 again"),
])
def test_a_story_ends_well(story, told):
    done = run(story)
    assert done.returncode == 0 and told in done.stdout, done.stdout + done.stderr


def test_the_story_on_a_real_control_plane_ends_well():
    done = run("--real")
    assert done.returncode == 0 and "At most 1 rolled at a time" in done.stdout, done.stdout + done.stderr


def heed_interrupts():
    """Who is started in the background by a script is deaf to them, and so is what it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_what_is_kept_can_be_used_until_it_is_interrupted():
    """With the commands that are printed. The leader's story kills the first slipway: that alone does not end it."""
    process = subprocess.Popen([TOP / "tools" / "run", "leader", "--keep"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                               preexec_fn=heed_interrupts)
    said = ""
    for line in process.stdout:
        said += line
        if line.startswith("slipway's log:"):
            break
    kubeconfig, command = re.search(r"export KUBECONFIG=(\S+)\n  (.* get deployments,deploymentcoordinations)\n", said).groups()
    env = dict(os.environ, KUBECONFIG=kubeconfig)
    listed = subprocess.run(command, shell=True, env=env, capture_output=True, text=True, timeout=60)
    assert listed.returncode == 0 and "deployment.apps/cart" in listed.stdout, said + listed.stderr
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and "stop and remove everything" in rest
    assert subprocess.run(command, shell=True, env=env, capture_output=True, timeout=60).returncode != 0, "nothing is left"


def test_what_there_is_to_play():
    assert [line.split()[0] for line in run("--list").stdout.splitlines()] == ["shop", "failure", "leader", "stepping"]
    assert 'there is no story "x"; there are shop, failure, leader, stepping' in run("x").stderr
