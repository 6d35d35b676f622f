# SPDX-License-Identifier: Apache-2.0
"""What slipway sees in a Deployment, against `kubectl rollout status` and kstatus, on random objects.

The same verdict, but for the exceptions that verdicts.py names, each of which must be met. The real kubectl is asked about a
hundred; its rules, once they are shown to be those, and the rules of kstatus about tens of thousands.
"""

import concurrent.futures
import json
import os
import random
import subprocess
import time

import pytest

import verdicts
from conftest import PROGRAM
from test_faults import tell

VERDICTS = PROGRAM.parents[2] / "tests" / "sim_server" / "verdicts"
MANY = 15000  # for each seed
ASKED = 80
AT_ONCE = 3
SEEDS = {"a fixed seed": 1, "a new seed": int(time.time())}


def slipway(looks):
    """Our verdict on each."""
    lines = [line for one in looks for line in one.lines()]
    text = "".join("%d %s\n" % (pause_ms, json.dumps(given)) for pause_ms, given in lines)
    run = subprocess.run([VERDICTS], input=text, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    said = iter(run.stdout.splitlines())
    return [[next(said) for _ in one.lines()][-1] for one in looks]


@pytest.fixture(scope="module", params=SEEDS)
def seen(request):
    """Every fifth with numbers that no controller would write."""
    print("seed %d" % SEEDS[request.param])
    dice = random.Random(SEEDS[request.param])
    looks = [verdicts.look(dice, is_possible=number % 5 > 0) for number in range(MANY)]
    return list(zip(looks, slipway(looks)))


@pytest.mark.parametrize("theirs, words, exceptions", [
    (verdicts.kubectl, verdicts.AS_KUBECTL, verdicts.KUBECTL), (verdicts.kstatus, verdicts.AS_KSTATUS, verdicts.KSTATUS)],
    ids=["kubectl", "kstatus"])
def test_the_verdict_differs_only_where_it_is_meant_to(seen, theirs, words, exceptions):
    wrong, met = verdicts.compare(seen, theirs, words, exceptions)
    assert not wrong, "%d of %d:\n%s" % (len(wrong), len(seen), "\n".join(wrong[:5]))
    assert not [name for name, count in met.items() if not count], "never met"
    agreed = {ours for d, ours in seen if words.get(ours) == theirs(d)}
    assert agreed == set(words), "they never agree on the others"


# ---- the real kubectl ----

def put(api, given):
    """On a server whose controllers stand still. What it shows then."""
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    spec = dict(given["spec"], selector={"matchLabels": {"app": "x"}}, template=template)
    metadata = {key: given["metadata"][key] for key in ("name", "annotations")}
    found = api.post(path, dict(given, metadata=metadata, spec=spec))
    path += "/" + metadata["name"]
    while found["metadata"]["generation"] < given["metadata"]["generation"]:
        found = api.patch(path, {"spec": {"minReadySeconds": found["metadata"]["generation"]}})
    return api.request("PUT", path + "/status", dict(found, status=given["status"]))


def rollout_status(kubectl, name):
    run = kubectl("rollout", "status", "deployment/" + name, "-n", "default", "--watch=false")
    for word, text in (("failed", "exceeded its progress deadline"), ("unknown", "spec update to be observed"),
                       ("rolling", "rollout to finish"), ("complete", "successfully rolled out")):
        if text in run.stdout + run.stderr:
            assert (run.returncode != 0) == (word == "failed"), run
            return word
    raise AssertionError(run)


def test_kubectl_says_what_its_rules_here_say(simulator, tmp_path):
    seed = SEEDS["a new seed"]
    dice, api, env = random.Random(seed), simulator.client(), simulator.environment()
    assert tell(simulator, "PUT", "/controllers", {"running": False})[0] == 200
    looks = []
    for number in range(ASKED):
        given = verdicts.deployment(dice, "d-%d" % number)
        given["metadata"].pop("deletionTimestamp", None)
        looks.append(verdicts.Look(put(api, given)))

    def kubectl(*args):
        return subprocess.run([env["SLIPWAY_KUBECTL"], "--cache-dir", str(tmp_path / "cache"), *args], env=dict(os.environ, **env),
                              stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=120)

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        said = list(pool.map(lambda one: rollout_status(kubectl, one.given["metadata"]["name"]), looks))
    wrong = ["kubectl says %s, its rules %s: %s" % (word, verdicts.kubectl(one), one.given)
             for one, word in zip(looks, said) if verdicts.kubectl(one) != word]
    assert not wrong, "seed %d, %d of %d:\n%s" % (seed, len(wrong), ASKED, "\n".join(wrong[:5]))
    assert set(said) == set(verdicts.AS_KUBECTL), "not each verdict was met: seed %d" % seed
    # The same objects, as a server shows them, and what the real kubectl says of them.
    words = {one: word for one, word in zip(looks, said)}
    wrong, _ = verdicts.compare(list(zip(looks, slipway(looks))), lambda one: words[one], verdicts.AS_KUBECTL, verdicts.KUBECTL)
    assert not wrong, "seed %d:\n%s" % (seed, "\n".join(wrong[:5]))
