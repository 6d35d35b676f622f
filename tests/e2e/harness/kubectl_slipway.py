# SPDX-License-Identifier: Apache-2.0
"""kubectl slipway, as a person calls it."""

import json
import os
import subprocess

from .slipway import BUILD

FOLDER = BUILD / "tools" / "kubectl-slipway"
PROGRAM = FOLDER / "kubectl-slipway"
DONE, FAILED, USAGE, FINDINGS, NOT_FOUND = range(5)
SANITIZERS = ("Sanitizer", "runtime error:", "loop closed while")


def environment(scene, **more):
    env = scene.cluster.environment()
    env["PATH"] = str(FOLDER) + os.pathsep + env["PATH"]
    return dict(env, LC_ALL="C.UTF-8", **more)


def run(scene, *args, status=DONE, namespace=True, **env):
    """What it prints; what it complains of where it is to fail. status None: any."""
    argv = [str(PROGRAM), *args, *(["-n", scene.namespace] if namespace else [])]
    done = subprocess.run(argv, env=environment(scene, **env), text=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    assert not any(word in done.stderr for word in SANITIZERS), done.stderr
    assert status in (None, done.returncode), "%s: %d\n%s%s" % (argv, done.returncode, done.stdout, done.stderr)
    return done.stdout if done.returncode in (DONE, FINDINGS) else done.stderr


def facts(scene, *args, **options):
    return json.loads(run(scene, *args, "-o", "json", **options))
