# SPDX-License-Identifier: Apache-2.0
"""Members that are unwell: failed rollouts, crash loops, drains, autoscalers; and the availability guard."""

import itertools
import threading

from harness import observer as look
from harness.wait import stays, until


def broken(scene, name, **settings):
    """From now on new Pods of that Deployment behave so."""
    scene.cluster.kubelets("PUT", "/settings/%s-%s" % (scene.namespace, name),
                           dict(settings or {"ready": "false"}, namespace=scene.namespace, selector="name=" + name))


def cured(scene, name):
    scene.cluster.kubelets("DELETE", "/settings/%s-%s" % (scene.namespace, name))


def hurry(scene, name, deadline_s=3):
    """Of this one alone, and only while it is broken: on a slow machine others, too, would miss such a deadline."""
    scene.patch(name, {"spec": {"progressDeadlineSeconds": deadline_s}})


def test_a_failed_rollout_stops_the_group_until_a_new_template_comes(scene):
    scene.slipway()
    scene.group("a", "b", replicas=1)
    broken(scene, "a")
    hurry(scene, "a")
    scene.update("a", "b")
    scene.until_condition("Degraded", "True", "RolloutFailed")
    assert "a" in scene.condition("Degraded")["message"]
    scene.until_event("RolloutFailed", "web")
    stays(lambda: not scene.runs("b", "2"), "b waits: failurePolicy Stop", 2)
    cured(scene, "a")
    hurry(scene, "a", 600)
    scene.update("a", version="3")
    scene.until_runs("a", version="3")
    scene.until_runs("b", version="2")
    scene.until_condition("Degraded", "False")


def test_a_failed_rollout_is_put_aside_and_the_group_goes_on(scene):
    scene.slipway()
    scene.group("a", "b", replicas=1, spec={"failurePolicy": "Skip"})
    broken(scene, "a")
    hurry(scene, "a")
    scene.update("a", "b")
    scene.until_runs("b", version="2")
    assert scene.state_of("a")["failedTemplate"]
    assert scene.is_held("a")
    scene.until_condition("Degraded", "True", "RolloutFailed")
    # Another template is another chance.
    cured(scene, "a")
    hurry(scene, "a", 600)
    scene.update("a", version="3")
    scene.until_runs("a", version="3")
    scene.until_condition("Degraded", "False")
    assert not scene.state_of("a").get("failedTemplate")


def test_one_that_was_put_aside_and_is_complete_again_is_forgiven(scene):
    scene.slipway()
    scene.group("a", "b", replicas=1, spec={"failurePolicy": "Skip"})
    broken(scene, "a")
    hurry(scene, "a")
    scene.update("a", "b")
    scene.until_runs("b", version="2")
    until(lambda: scene.state_of("a").get("failedTemplate"), "a is put aside")
    cured(scene, "a")
    scene.update("a", version="1")
    scene.until_runs("a", version="1")
    until(lambda: not scene.state_of("a").get("failedTemplate"), "a is forgiven")
    scene.until_ready()


def test_pods_that_flap_do_not_keep_the_turn_for_ever(scene):
    """Each time a Pod becomes ready the controller begins its deadline again; slipway's own is of high-water marks."""
    scene.slipway()
    scene.group("a", "b", replicas=2, spec={"failurePolicy": "Skip"})
    broken(scene, "a", flap="1s")
    scene.patch("a", {"spec": {"minReadySeconds": 2, "progressDeadlineSeconds": 4}})
    scene.update("a", "b")
    scene.until_runs("b", version="2")
    assert scene.state_of("a")["failedTemplate"]


def test_a_crash_loop_takes_no_turn_and_keeps_none(scene):
    scene.slipway()
    scene.group("a", "b", replicas=2, spec={"availabilityGuard": "Off"})
    broken(scene, "a", fail="CrashLoopBackOff")
    for name in [name for name in scene.observer.pods() if name.startswith("a-")]:
        scene.cluster.crash(scene.namespace, name)
    until(lambda: look.number(scene.get("a"), "availableReplicas") < 2, "a is unwell")
    scene.update("b")
    scene.until_runs("b")
    assert "a" not in scene.observer.turns()[1:] or scene.observer.turns().count("a") == 1
    assert scene.state_of("a")["hasPendingChanges"] is False


def test_a_drained_member_takes_no_turn(scene):
    scene.slipway()
    scene.group("a", "b", replicas=2)
    before = scene.observer.turns().count("a")
    scene.cluster.kubectl("delete", "pods", "-n", scene.namespace, "-l", "name=a", "--wait=false")
    scene.update("b")
    scene.until_runs("b")
    scene.until_runs("a", version="1")
    assert scene.observer.turns().count("a") == before


def test_an_autoscaler_that_never_rests_starves_nobody(scene):
    scene.slipway()
    scene.group("a", "b", "c", replicas=2)
    stop = threading.Event()

    def scale_on():
        replicas = 2
        while not stop.wait(0.3):
            replicas = 5 - replicas
            scene.scale("a", replicas)

    hpa = threading.Thread(target=scale_on)
    hpa.start()
    try:
        scene.update("b", "c")
        scene.until_runs("b", "c")
        scene.update("a")

        def serving():
            return [pod for name, pod in scene.observer.pods().items() if name.startswith("a-") and look.condition(pod, "Ready").get("status") == "True"
                    and pod["metadata"]["annotations"]["version"] == "2"]
        until(lambda: len(serving()) >= 2, "a had its turn too: Pods of the new version serve")
        assert hpa.is_alive(), "while the autoscaler still worked"
    finally:
        stop.set()
        hpa.join()
    scene.until_runs("a")
    scene.until_ready()


def test_an_autoscaler_does_not_lengthen_the_wait(scene):
    scene.slipway()
    wait_s, step_s = 12, 5
    scene.group("a", "b", replicas=2)
    scene.settle_coordination(minReadySeconds=wait_s)
    scene.update("a", "b")
    until(lambda: scene.runs("a", "2"), "a is complete")
    stop, sizes, turns = threading.Event(), itertools.cycle((3, 2)), scene.observer.turns().count("b")

    def scale_on():
        while not stop.wait(step_s):
            scene.scale("a", next(sizes))

    hpa = threading.Thread(target=scale_on)
    hpa.start()
    try:
        # It never stops: a wait that it lengthened would never be over.
        until(lambda: scene.observer.turns().count("b") > turns, "b rolls")
    finally:
        stop.set()
        hpa.join()
    scene.until_runs("b")


def test_an_autoscaler_that_goes_to_zero_and_back_takes_no_turn(scene):
    scene.slipway()
    scene.cluster.pods_take(scene.namespace, start="1s")
    scene.group("a", "b", replicas=1, spec={"availabilityGuard": "Off"})
    turns = len(scene.observer.turns())
    scene.update("b")
    for replicas in (0, 2, 0, 1):
        scene.scale("a", replicas)
        until(lambda replicas=replicas: look.number(scene.get("a"), "replicas") == replicas, "a has %d Pods" % replicas)
    scene.until_runs("b")
    scene.until_runs("a", version="1")
    scene.until_ready()
    assert scene.observer.turns()[turns:] == ["b"]


def test_nobody_starts_while_another_member_is_unavailable(scene):
    scene.slipway()
    scene.group("a", "b", replicas=2)
    broken(scene, "b")
    scene.cluster.kubectl("delete", "pods", "-n", scene.namespace, "-l", "name=b", "--wait=false")
    until(lambda: look.condition(scene.get("b"), "Available").get("status") == "False", "b is unavailable")
    scene.update("a")
    scene.until_condition("Degraded", "True", "PeerUnavailable")
    assert "b" in scene.condition("Degraded")["message"]
    scene.until_event("ActivationBlocked", "web")
    stays(lambda: scene.is_held("a"), "a waits for b", 2)
    scene.api.patch("/apis/apps.containerinfra.nl/v1/namespaces/%s/deploymentcoordinations/web" % scene.namespace,
                    {"metadata": {"annotations": {"slipway.dev/skip-guard": "true"}}})
    scene.until_runs("a")


def test_of_two_unavailable_members_that_both_wait_the_worse_goes_first(scene):
    scene.slipway()
    scene.group("a", "b", replicas=4, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}})
    scene.suspend()
    lost = {"a": 2, "b": 3}
    for name, count in lost.items():
        pods = [pod for pod_name, pod in sorted(scene.observer.pods().items()) if pod_name.startswith(name + "-")]
        # Pods of this template alone: the new one is the cure.
        template = pods[0]["metadata"]["labels"]["pod-template-hash"]
        scene.cluster.kubelets("PUT", "/settings/%s-%s" % (scene.namespace, name), {
            "namespace": scene.namespace, "selector": "name=%s,pod-template-hash=%s" % (name, template), "start": "1h"})
        for pod in pods[:count]:
            scene.cluster.kubectl("delete", "pod", "-n", scene.namespace, pod["metadata"]["name"], "--wait=false")
    for name, count in lost.items():
        until(lambda name=name, count=count: look.number(scene.get(name), "availableReplicas") == 4 - count
              and look.condition(scene.get(name), "Available").get("status") == "False", name + " is unavailable")
    turns = len(scene.observer.turns())
    scene.update("a", "b")
    until(lambda: scene.status().get("pending") == 2, "both wait")
    scene.patch_coordination(suspend=False)
    scene.until_runs("a", "b", timeout_s=90)
    scene.until_ready()
    assert scene.observer.turns()[turns:] == ["b", "a"], "b had the fewest"
