# SPDX-License-Identifier: Apache-2.0
"""What the log says: of one rollout all lines bear one identifier, on every replica and after a restart; never a secret."""

import base64
import json
import re

from harness.slipway import key_lines, make_certificate
from harness.wait import until

NAMES = ("alpha", "beta", "gamma")


def lines(*slipways, since=0):
    return [json.loads(line) for slipway in slipways for line in slipway.log().splitlines()[since:]]


def of(found, rollout):
    return [line for line in found if line.get("rollout") == rollout]


def named(scene, line):
    """The Deployments of the group that a line speaks of."""
    full = re.findall(r"%s/(\w+)" % scene.namespace, " ".join(str(value) for value in line.values()))
    return {name for name in [*full, line.get("name")] if name in NAMES}


def identifiers(found, version_lines=None):
    """name of a Deployment: those of its rollouts, in the order in which they were held."""
    made = {name: [] for name in NAMES}
    for line in found:
        if line["msg"] == "held at admission" and line.get("newTemplate") and line["name"] in made and line["rollout"] not in made[line["name"]]:
            made[line["name"]].append(line["rollout"])
    return made


def test_all_lines_of_a_rollout_share_an_identifier_and_no_others_have_it(scene):
    slipway = scene.slipway()
    scene.group(*NAMES, replicas=1)
    first = len(slipway.log().splitlines())
    before = identifiers(lines(slipway))
    scene.update(*NAMES)
    scene.until_runs(*NAMES)
    scene.until_ready()
    found = lines(slipway, since=first)
    made = identifiers(found)
    assert all(len(ids) == 1 for ids in made.values()), made
    assert len({*(ids[0] for ids in made.values()), *(ids[0] for ids in before.values())}) == 6, "each rollout has its own"
    for name in NAMES:
        mine = of(found, made[name][0])
        said = [line["msg"] for line in mine]
        for message in ("held at admission", "turn recorded", "turn given", "DeploymentActivated", "RolloutReleased", "ActiveDeploymentChanged",
                        "turn taken back", "DeploymentPaused", "ActiveDeploymentReady", "ActiveDeploymentCleared"):
            assert message in said, "%s: %s" % (name, said)
        assert said.index("held at admission") < said.index("turn recorded") < said.index("turn given") < said.index("turn taken back")
        assert all(named(scene, line) == {name} for line in mine), mine
    assert sum(line["msg"] == "RolloutHeld" for line in found) == 2
    # Nothing of these is said without it, and what one run of the plan says bears its identifier too.
    for line in found:
        if line["logger"] in ("coordination", "pausing") and named(scene, line):
            assert line.get("rollout") in {made[name][0] for name in named(scene, line)}, line
        if line["msg"] in ("turn recorded", "turn given", "turn taken back", "RolloutHeld", "ActiveDeploymentReady"):
            assert re.fullmatch("[0-9a-f]{16}", line["reconcileID"]), line


def test_the_identifier_is_the_same_on_every_replica_and_after_a_restart(scene):
    leader = scene.slipway("leader", leader_elect=True, webhook=False)
    leader.until_leading()
    asked = scene.slipway("asked", leader_elect=True)
    scene.group(*NAMES, replicas=1)
    first = {process: len(process.log().splitlines()) for process in (leader, asked)}
    scene.roll_and_stall(*NAMES)
    made = identifiers(lines(asked, since=first[asked]))
    assert [len(made[name]) for name in NAMES] == [1, 1, 1]
    given = [line["name"] for line in lines(leader, since=first[leader]) if line["msg"] == "turn given"]
    assert given == ["alpha"]
    assert "turn given" in [line["msg"] for line in of(lines(leader), made["alpha"][0])]
    leader.stop()
    asked.until_leading()
    scene.let_pods_go()
    scene.until_runs(*NAMES)
    scene.until_ready()
    found = lines(asked, since=first[asked])
    for name in NAMES:
        said = {line["msg"] for line in of(found, made[name][0])}
        assert {"held at admission", "ActiveDeploymentReady", "turn taken back"} <= said, "%s: %s" % (name, said)
    assert "turn given" in {line["msg"] for line in of(found, made["beta"][0])}


def test_a_failure_is_said_of_the_rollout_that_failed(scene):
    slipway = scene.slipway()
    scene.group(*NAMES, replicas=1)
    first = len(slipway.log().splitlines())
    scene.stall_pods()
    scene.patch("alpha", {"spec": {"progressDeadlineSeconds": 2}})
    scene.update("alpha", "beta")
    scene.until_condition("Degraded", "True", "RolloutFailed")
    until(lambda: any(line["msg"] == "RolloutFailed" for line in lines(slipway, since=first)), "it is said")
    found = lines(slipway, since=first)
    made = identifiers(found)
    assert [line["level"] for line in of(found, made["alpha"][0]) if line["msg"] == "RolloutFailed"] == ["warn"]
    assert "RolloutFailed" not in [line["msg"] for line in of(found, made["beta"][0])]
    scene.patch("alpha", {"spec": {"progressDeadlineSeconds": 600}})
    scene.let_pods_go()
    scene.until_runs("alpha", "beta")


def test_no_secret_is_logged_whatever_happens_to_it(scene, tmp_path):
    """Token, client key and the webhook's key: at level debug, through refusals and replacements. That of certificates of our own
    is looked for where they are made; the token and the webhook's key at the end of every scenario."""
    slipway = scene.slipway(start=False, webhook=False)
    make_certificate(tmp_path / "client")
    path = slipway.folder / "kubeconfig"
    kubeconfig = json.loads(path.read_text())
    user = kubeconfig["users"][0]["user"]
    user["client-certificate-data"], user["client-key-data"] = (
        base64.b64encode((tmp_path / "client" / name).read_bytes()).decode() for name in ("tls.crt", "tls.key"))
    path.write_text(json.dumps(kubeconfig))
    slipway.secrets += [*key_lines(tmp_path / "client" / "tls.key"), user["client-key-data"][:64], user["client-key-data"][-64:]]
    slipway.start()
    scene.webhook_of(slipway)
    rules = ({"status": 401, "times": 2}, {"status": 500, "times": 2}, {"cutAfter": 0, "times": 1})
    for number, rule in enumerate(rules):
        scene.cluster.kubelets("PUT", "/faults/%d" % number, dict(rule, method="PATCH", path="/namespaces/%s/deployments" % scene.namespace))
    scene.group(*NAMES, replicas=1)
    make_certificate(slipway.folder / "certs")  # another pair of the same names
    slipway.secrets += key_lines(slipway.folder / "certs" / "tls.key")
    until(lambda: '"msg":"certificate replaced"' in slipway.log(), "the new pair is served", 60)
    slipway.settings.publish({"slipway.yaml": "client: {qps: 40, token: %s}\n" % user["token"]})
    until(lambda: "configuration cannot be used" in slipway.log(), "a mistake in the configuration is said", 60)
    slipway.check_secrets(slipway.secrets)
    assert len(slipway.secrets) > 10 and '"level":"debug"' in slipway.log()
