# SPDX-License-Identifier: Apache-2.0
"""What the tests of tools/control-plane share: running it, waiting for what it leads to.

The fixtures are in conftest.py.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
CONTROL_PLANE = str(TOP / "tools" / "control-plane")
KUBELETS = str(TOP / "tools" / "kubelets")

sys.path.insert(0, str(TOP / "tools"))


def clean_env(**more):
    """The environment without what would point the tools at another instance."""
    env = {name: value for name, value in os.environ.items()
           if name == "SLIPWAY_KUBERNETES"
           or not name.startswith("SLIPWAY_") and name not in ("KUBECONFIG", "KUBEBUILDER_ASSETS")}
    env.update(more)
    return env


def run(argv, ok=True, env=None, text=None, timeout=600):
    done = subprocess.run(argv, env=env or clean_env(), input=text, capture_output=True,
                          text=True, timeout=timeout)
    if ok and done.returncode != 0:
        pytest.fail("%s: status %d\n%s%s" % (" ".join(argv), done.returncode, done.stdout,
                                             done.stderr))
    return done


def wait(what, function, seconds=180):
    """The first true answer of `function`; fails, with the last answer, when none comes. The limit
    is for a machine that is busy with something else."""
    deadline = time.monotonic() + seconds
    while True:
        answer = function()
        if answer:
            return answer
        if time.monotonic() > deadline:
            pytest.fail("waited %d s for %s; last seen: %r" % (seconds, what, answer))
        time.sleep(0.05)


class Plane:
    """One instance, as a user sees it: through the commands, and through kubectl."""

    def __init__(self, folder):
        self.dir = str(folder)
        self._env = None

    def control(self, command, *arguments, ok=True, env=None):
        if command in ("up", "down"):
            self._env = None
        return run([CONTROL_PLANE, command, "--dir", self.dir, *arguments], ok, env)

    def up(self, *arguments, **how):
        return self.control("up", *arguments, **how)

    def down(self, *arguments, **how):
        return self.control("down", *arguments, **how)

    def env(self):
        """As it was after the last up: waiting, which asks often, would else start a Python each time."""
        if not self._env:
            self._env = json.loads(self.control("env", "--json").stdout)
        return self._env

    def status(self):
        return json.loads(self.control("status", "--json", ok=False).stdout)

    def pids(self):
        return {part["part"]: part["pid"] for part in self.status()["parts"]}

    def kubectl(self, *arguments, ok=True, text=None, kubeconfig=None):
        env = self.env()
        return run([env["SLIPWAY_KUBECTL"], *arguments], ok,
                   clean_env(KUBECONFIG=kubeconfig or env["KUBECONFIG"], HOME=self.dir + ".home"), text)

    def get(self, *arguments):
        return json.loads(self.kubectl("get", "-o", "json", *arguments).stdout)

    def apply(self, value, namespace="default"):
        return self.kubectl("apply", "-n", namespace, "-f", "-", text=json.dumps(value))

    def kubelets(self, *arguments, ok=True):
        command, *rest = arguments
        return run([KUBELETS, command, "--dir", self.dir, *rest], ok)

    def pods(self, namespace):
        return self.get("pods", "-n", namespace)["items"]


def is_ready(pod):
    return any(one["type"] == "Ready" and one["status"] == "True"
               for one in pod["status"].get("conditions", []))


def container(pod):
    """The first container's status, or one that says nothing."""
    return (pod["status"].get("containerStatuses") or [
        {"ready": False, "restartCount": 0, "state": {}}])[0]


def workload(kind, name, replicas=None, annotations=None, image="app:1", **spec):
    template = {"metadata": {"labels": {"app": name}, "annotations": annotations or {}},
                "spec": {"containers": [{"name": "app", "image": image}], **spec}}
    value = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
             "spec": {"selector": {"matchLabels": {"app": name}}, "template": template}}
    if replicas is not None:
        value["spec"]["replicas"] = replicas
    if kind == "StatefulSet":
        value["spec"]["serviceName"] = name
    return value
