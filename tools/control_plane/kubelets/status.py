# SPDX-License-Identifier: Apache-2.0
"""What a kubelet would report for a Pod now, and when that changes next.

No I/O and no clock: the time comes in. A Record is what this kubelet remembers of one Pod, and
`plan` brings it forward to `now`:

  starting   bound, `start` not over:      Pending, ContainerCreating
  stuck      fail, never ran:              Pending, waiting with that reason
  crashing   fail, ran and ended:          Running, waiting with that reason, restarts counted up
  running                                  Running, ready unless told otherwise, unless `flap`
                                           has its other half, or a container was just restarted

A container restarts when it is told to crash, and when its image is changed in place.
"""

import calendar
import time

from .settings import NEVER_RAN

# How long a crashing container waits before the next try: doubled each time, as a kubelet does,
# but from 1 s to 30 s instead of from 10 s to 5 minutes, because somebody is watching.
BACKOFF_FIRST_S = 1.0
BACKOFF_LAST_S = 30.0


class Container:
    def __init__(self, name, image, restarts=0, started_s=None):
        self.name = name
        self.image = image
        self.restarts = restarts
        self.started_s = started_s
        self.down_until_s = 0.0
        self.ended_s = None
        self.exit_code = None


class Record:
    """What is remembered of a bound Pod; begun from the status that it has already."""

    def __init__(self, pod, pod_ip, now):
        status = pod.get("status") or {}
        self.pod_ip = status.get("podIP") or pod_ip
        self.bound_s = parse_time(status.get("startTime")) or now
        self.deleted_s = None
        self.is_ended = False
        self.backoff_s = BACKOFF_FIRST_S
        self.next_crash_s = None
        known = {one["name"]: one for one in status.get("containerStatuses") or []}
        self.containers = []
        for spec in pod["spec"]["containers"]:
            one = known.get(spec["name"], {})
            running = (one.get("state") or {}).get("running") or {}
            self.containers.append(Container(
                spec["name"], one.get("image", spec["image"]), one.get("restartCount", 0),
                parse_time(running.get("startedAt"))))

    def has_run(self):
        return any(one.started_s is not None for one in self.containers)

    def crash(self, now, down_s, exit_code=1):
        for container in self.containers:
            restart(container, now, down_s, exit_code)


def restart(container, now, down_s, exit_code):
    container.restarts += 1
    container.ended_s = now
    container.exit_code = exit_code
    container.started_s = now
    container.down_until_s = now + down_s


def plan(pod, record, settings, mistake, host_ip, now):
    """(the status to report, the time at which it changes next or None)."""
    if mistake:
        return _pending(pod, record, host_ip, now, "BadKubeletSettings", mistake), None
    fail = settings["fail"]
    if fail in NEVER_RAN:
        return _pending(pod, record, host_ip, now, fail, "told so by a test"), None
    started_s = record.bound_s + settings["start"]
    if now < started_s and not record.has_run():
        return _pending(pod, record, host_ip, now, "ContainerCreating", None), started_s
    if fail:
        _crash_on(record, now)
        return _running(pod, record, host_ip, now, False, fail), record.next_crash_s
    record.next_crash_s = None
    record.backoff_s = BACKOFF_FIRST_S
    _restart_changed(pod, record, settings, now)
    wakes = [one.down_until_s for one in record.containers if one.down_until_s > now]
    ready = settings["ready"]
    flap = settings["flap"]
    if ready and flap:
        turn = int((now - started_s) / flap)
        ready = turn % 2 == 0
        wakes.append(started_s + (turn + 1) * flap)
    return _running(pod, record, host_ip, now, ready, ""), min(wakes, default=None)


def _crash_on(record, now):
    if record.next_crash_s is None:
        record.next_crash_s = now
    while record.next_crash_s <= now:
        for container in record.containers:
            if container.started_s is not None:
                container.restarts += 1
            container.started_s = container.ended_s = record.next_crash_s
            container.exit_code = 1
        record.next_crash_s += record.backoff_s
        record.backoff_s = min(2 * record.backoff_s, BACKOFF_LAST_S)


def _restart_changed(pod, record, settings, now):
    images = {spec["name"]: spec["image"] for spec in pod["spec"]["containers"]}
    for container in record.containers:
        image = images.get(container.name, container.image)
        if container.started_s is None:
            container.image = image
            container.started_s = now
        elif image != container.image:
            container.image = image
            restart(container, now, settings["start"], 0)


def _pending(pod, record, host_ip, now, reason, message):
    waiting = {"reason": reason}
    if message:
        waiting["message"] = message
    containers = [{
        "name": one.name, "image": one.image, "imageID": "", "ready": False, "started": False,
        "restartCount": one.restarts, "state": {"waiting": waiting}, "lastState": {},
    } for one in record.containers]
    if record.has_run():
        return _status(pod, record, host_ip, now, "Running", containers, False)
    status = _status(pod, record, host_ip, now, "Pending", containers, False)
    del status["podIP"], status["podIPs"]
    return status


def _running(pod, record, host_ip, now, ready, waiting_reason):
    containers = []
    for one in record.containers:
        is_ready = ready and one.down_until_s <= now
        last = {}
        if one.ended_s is not None:
            last = {"terminated": {
                "exitCode": one.exit_code, "reason": "Error" if one.exit_code else "Completed",
                "startedAt": format_time(one.ended_s), "finishedAt": format_time(one.ended_s)}}
        if waiting_reason:
            state = {"waiting": {"reason": waiting_reason, "message": "told so by a test"}}
        else:
            state = {"running": {"startedAt": format_time(one.started_s)}}
        containers.append({
            "name": one.name, "image": one.image, "imageID": "played://" + one.image,
            "containerID": "played://%s/%s/%d" % (pod["metadata"]["uid"], one.name, one.restarts),
            "ready": is_ready, "started": not waiting_reason, "restartCount": one.restarts,
            "state": state, "lastState": last})
    return _status(pod, record, host_ip, now, "Running", containers,
                   all(one["ready"] for one in containers))


def _status(pod, record, host_ip, now, phase, containers, ready):
    old = {one["type"]: one for one in (pod.get("status") or {}).get("conditions") or []}
    gates = [one["conditionType"] for one in pod["spec"].get("readinessGates") or []]
    open_gates = [gate for gate in gates if old.get(gate, {}).get("status") != "True"]
    not_ready = None if ready else "ContainersNotReady"
    conditions = [
        _condition(old, "Initialized", True, None, now),
        _condition(old, "ContainersReady", ready, not_ready, now),
        _condition(old, "Ready", ready and not open_gates,
                   not_ready or ("ReadinessGatesNotReady" if open_gates else None), now)]
    status = {
        "phase": phase, "conditions": conditions, "containerStatuses": containers,
        "hostIP": host_ip, "podIP": record.pod_ip, "podIPs": [{"ip": record.pod_ip}],
        "startTime": format_time(record.bound_s)}
    init = pod["spec"].get("initContainers") or []
    if init:
        status["initContainerStatuses"] = [{
            "name": one["name"], "image": one["image"], "imageID": "played://" + one["image"],
            "ready": True, "restartCount": 0, "lastState": {},
            "state": {"terminated": {"exitCode": 0, "reason": "Completed",
                                     "startedAt": format_time(record.bound_s),
                                     "finishedAt": format_time(record.bound_s)}}} for one in init]
    return status


def _condition(old, kind, value, reason, now):
    status = "True" if value else "False"
    before = old.get(kind, {})
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    condition = {"type": kind, "status": status,
                 "lastTransitionTime": since or format_time(now)}
    # A strategic merge keeps a reason that is not named, so the absence of one is said.
    condition["reason"] = reason
    return condition


def differs(pod, wanted):
    """Whether the API server has another status than `wanted`."""
    have = pod.get("status") or {}
    if any(have.get(key) != wanted.get(key) for key in ("phase", "hostIP", "startTime")):
        return True
    if "podIP" in wanted and have.get("podIP") != wanted["podIP"]:
        return True
    conditions = {one["type"]: one for one in have.get("conditions") or []}
    for one in wanted["conditions"]:
        other = conditions.get(one["type"], {})
        if (other.get("status"), other.get("reason")) != (one["status"], one["reason"]):
            return True
    return _digest(have) != _digest(wanted)


def _digest(status):
    return [(one["name"], one.get("image"), one["ready"], one["restartCount"], one.get("started"),
             sorted((one.get("state") or {}).items(), key=lambda item: item[0]))
            for one in sorted(status.get("containerStatuses") or [], key=lambda one: one["name"])]


def format_time(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def parse_time(text):
    return float(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))) if text else None
