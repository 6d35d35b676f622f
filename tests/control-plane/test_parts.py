# SPDX-License-Identifier: Apache-2.0
"""The parts of tools/control-plane that decide without a cluster: settings, status, placing,
the queue, the watch loop, apt's entries, and the order that the build keeps."""

import os
import stat
import threading
import time

import pytest

from planes import wait
from control_plane import build, debian, modules, sources
from control_plane.kubelets import placing, settings, status
from control_plane.kubelets.agent import Agent
from control_plane.kubelets.queue import Queue
from control_plane.problem import Problem


def pod(name="web-1", node="node-1", labels=None, annotations=None, **spec):
    spec.setdefault("containers", [{"name": "app", "image": "app:1"}])
    if node:
        spec["nodeName"] = node
    return {"metadata": {"namespace": "shop", "name": name, "uid": "u-" + name,
                         "labels": labels or {}, "annotations": annotations or {}},
            "spec": spec, "status": {"phase": "Pending"}}


def node(name, labels=None, taints=None, unschedulable=None, pods="10k"):
    return {"metadata": {"name": name, "labels": labels or {}},
            "spec": {"taints": taints, "unschedulable": unschedulable},
            "status": {"allocatable": {"pods": pods}}}


@pytest.mark.parametrize("text, seconds", [
    ("3s", 3), ("200ms", 0.2), ("1m30s", 90), ("2", 2), ("1.5s", 1.5), ("1h", 3600), ("0", 0)])
def test_durations(text, seconds):
    assert settings.duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "3x", "-1s", "1s2", "soon", "1 s"])
def test_durations_that_are_none(text):
    with pytest.raises(settings.Mistake, match="is not a time"):
        settings.duration(text)


@pytest.mark.parametrize("text, labels, answer", [
    ("app=web", {"app": "web"}, True),
    ("app==web", {"app": "db"}, False),
    ("app=web,tier!=db", {"app": "web", "tier": "db"}, False),
    ("tier!=db", {}, True),
    ("app in (web, api),x", {"app": "api", "x": ""}, True),
    ("app notin (web,api)", {"app": "web"}, False),
    ("!app", {}, True),
    ("app", {}, False),
    ("", {}, True)])
def test_selectors(text, labels, answer):
    assert settings.Selector(text).matches(labels) == answer


def test_the_last_rule_told_counts_before_annotations_and_defaults():
    told = pod(labels={"app": "web"}, annotations={settings.PREFIX + "start": "5s",
                                                   settings.PREFIX + "stop": "6s"})
    rules = [settings.Rule("a", {"namespace": "shop", "start": "1s", "flap": "9s"}),
             settings.Rule("b", {"selector": "app=web", "start": "2s"}),
             settings.Rule("c", {"pod": "another", "start": "3s"})]
    found, mistake = settings.resolve(told, rules, settings.DEFAULTS)
    assert mistake is None
    assert found == {"start": 2, "stop": 6, "ready": True, "fail": "", "flap": 9}


def test_a_mistake_in_an_annotation_is_named():
    told = pod(annotations={settings.PREFIX + "fail": "Boredom"})
    assert "fail: \"Boredom\" is not one of" in settings.resolve(
        told, [], settings.DEFAULTS)[1]


def played(one, record, now, mistake=None, **changed):
    """The status at `now`, written to the Pod as the API server would."""
    report, wake_s = status.plan(one, record, dict(settings.DEFAULTS, **changed), mistake,
                                 "10.0.0.1", now)
    if status.differs(one, report):
        one["status"] = dict(one["status"], **report)
        assert not status.differs(one, report)
    return report, wake_s


def ready_of(report):
    return [one["status"] for one in report["conditions"] if one["type"] == "Ready"][0]


def test_a_pod_starts_runs_and_crashes():
    one = pod()
    record = status.Record(one, "10.1.0.1", 1000.0)
    report, wake_s = played(one, record, 1000.0, start=3.0)
    assert (report["phase"], ready_of(report), wake_s) == ("Pending", "False", 1003.0)
    assert "podIP" not in report
    report, wake_s = played(one, record, 1003.0, start=3.0)
    assert (report["phase"], ready_of(report), wake_s) == ("Running", "True", None)
    # A longer start told now is for those that have not started.
    assert ready_of(played(one, record, 1004.0, start=60.0)[0]) == "True"
    record.crash(1010.0, 2.0)
    report, wake_s = played(one, record, 1010.0)
    assert (ready_of(report), wake_s) == ("False", 1012.0)
    assert report["containerStatuses"][0]["restartCount"] == 1
    report, wake_s = played(one, record, 1012.0)
    assert (ready_of(report), wake_s) == ("True", None)


def test_crashes_back_off_and_stop_when_told():
    one = pod()
    record = status.Record(one, "10.1.0.1", 1000.0)
    counts = []
    now = 1000.0
    for _ in range(8):
        report, wake_s = played(one, record, now, start=0.0, fail="CrashLoopBackOff")
        counts.append((now - 1000.0, report["containerStatuses"][0]["restartCount"]))
        now = wake_s
    assert counts == [(0, 0), (1, 1), (3, 2), (7, 3), (15, 4), (31, 5), (61, 6), (91, 7)]
    report, wake_s = played(one, record, now, start=0.0)
    assert (ready_of(report), wake_s) == ("True", None)
    assert report["containerStatuses"][0]["restartCount"] == 7


def test_flapping_wakes_at_each_turn():
    one = pod()
    record = status.Record(one, "10.1.0.1", 1000.0)
    turns = []
    now = 1000.0
    for _ in range(4):
        report, wake_s = played(one, record, now, start=0.0, flap=2.0)
        turns.append((now, ready_of(report)))
        now = wake_s
    assert turns == [(1000, "True"), (1002, "False"), (1004, "True"), (1006, "False")]


def test_a_new_agent_continues_where_an_old_one_ended():
    one = pod()
    record = status.Record(one, "10.1.0.1", 1000.0)
    played(one, record, 1000.0, start=0.0)
    record.crash(1001.0, 0.0)
    played(one, record, 1001.0, start=0.0)
    again = status.Record(one, "10.1.0.99", 2000.0)
    report, wake_s = status.plan(one, again, settings.DEFAULTS, None, "10.0.0.1", 2000.0)
    assert not status.differs(one, report)
    assert report["podIP"] == "10.1.0.1"


def affinity(key, operator, values, where="matchExpressions"):
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{where: [{"key": key, "operator": operator, "values": values}]}]}}}


@pytest.mark.parametrize("spec, wanted", [
    ({}, "b"),
    ({"nodeSelector": {"zone": "1"}}, "a"),
    ({"nodeSelector": {"zone": "9"}}, None),
    ({"affinity": affinity("metadata.name", "In", ["a"], "matchFields")}, "a"),
    ({"affinity": affinity("zone", "NotIn", ["2"])}, "a"),
    ({"affinity": affinity("zone", "Gt", ["1"])}, "b"),
    ({"nodeSelector": {"zone": "3"}}, None),
    ({"nodeSelector": {"zone": "3"}, "tolerations": [{"operator": "Exists"}]}, "c"),
    ({"nodeSelector": {"zone": "3"}, "tolerations": [{"key": "k", "value": "v"}]}, "c"),
    ({"nodeSelector": {"zone": "3"}, "tolerations": [{"key": "k", "value": "w"}]}, None),
    ({"nodeSelector": {"zone": "4"}}, None),
    ({"nodeSelector": {"zone": "5"}}, None)])
def test_placing(spec, wanted):
    nodes = {"a": node("a", {"zone": "1"}), "b": node("b", {"zone": "2"}),
             "c": node("c", {"zone": "3"}, [{"key": "k", "value": "v", "effect": "NoSchedule"}]),
             "d": node("d", {"zone": "4"}, unschedulable=True),
             "e": node("e", {"zone": "5"}, pods="1")}
    counts = {"a": 2, "b": 1, "c": 0, "d": 0, "e": 1}
    assert placing.choose(pod(node=None, **spec), nodes, counts) == wanted


def test_a_key_comes_once_and_again_when_it_changed_meanwhile():
    queue = Queue()
    queue.add("a")
    queue.add("a")
    assert queue.get() == "a"
    queue.add("a")
    queue.add("b")
    assert queue.get() == "b"
    queue.done("a")
    assert queue.get() == "a"
    queue.done("a")
    queue.done("b")
    began = time.monotonic()
    queue.add_after("late", 0.05)
    queue.add_after("soon", 0.01)
    queue.add_after("late", 0.1)
    assert [queue.get(), queue.get()] == ["soon", "late"]
    assert time.monotonic() - began >= 0.1


class FakeClient:
    """An API server that says what a test tells it, one answer a call."""

    def __init__(self, lists, watches):
        self.lists = lists
        self.watches = watches
        self.asked = []
        self.finished = threading.Event()

    def get(self, path):
        self.asked.append("list")
        return self.lists.pop(0)

    def watch(self, path, version):
        self.asked.append("watch " + version)
        if not self.watches:
            self.finished.set()
            threading.Event().wait()
        for event in self.watches.pop(0):
            if isinstance(event, Exception):
                raise event
            yield event


def listed(version, *names):
    return {"metadata": {"resourceVersion": version}, "items": [pod(name) for name in names]}


def event(kind, version, name="web-1"):
    one = pod(name)
    one["metadata"]["resourceVersion"] = version
    return kind, one


def test_a_watch_is_resumed_and_one_too_old_is_listed_anew():
    client = FakeClient(
        [listed("10", "web-1", "web-2"), listed("50", "web-2")],
        [[event("ADDED", "11", "web-3"), event("BOOKMARK", "20")],
         [ConnectionResetError("cut")],
         [("ERROR", {"code": 410, "message": "too old"})]])
    said = []
    agent = Agent(client, said.append, {})
    threading.Thread(target=agent._watch_pods, daemon=True).start()
    assert client.finished.wait(30)
    assert client.asked == ["list", "watch 10", "watch 20", "watch 20", "list", "watch 50"]
    # What vanished while nobody looked is gone.
    assert [one["name"] for one in agent.describe_pods()] == ["web-2"]
    assert any("is cut" in line for line in said)


def test_an_odd_object_does_not_end_the_watch():
    client = FakeClient([listed("10"), listed("20", "web-2")],
                        [[("ADDED", {"metadata": {"resourceVersion": "11"}})]])
    said = []
    agent = Agent(client, said.append, {})
    threading.Thread(target=agent._watch_pods, daemon=True).start()
    assert client.finished.wait(30)
    assert [one["name"] for one in agent.describe_pods()] == ["web-2"]
    assert any("unexpected" in line for line in said)


DEB822 = """\
Types: deb
URIs: http://mirror.test/security
Suites: bookworm-security
Components: main
Signed-By: /keys/security.gpg

# The archive.
Types: deb
# a comment inside
URIs: http://mirror.test/debian
Suites: trixie trixie-updates
Components: main contrib
Signed-By: /keys/debian.gpg
"""


@pytest.mark.parametrize("files, wanted", [
    ({"sources.list.d/debian.sources": DEB822}, ("http://mirror.test/debian", "/keys/debian.gpg")),
    ({"sources.list": "# deb http://old.test/debian bookworm main\n"
                      "deb http://other.test/tools stable-thing main\n"
                      "deb [arch=amd64 signed-by=/keys/a.gpg,/keys/b.gpg] http://mirror.test/debian"
                      " bookworm main non-free # ours\n"},
     ("http://mirror.test/debian", "/keys/a.gpg /keys/b.gpg")),
    ({"sources.list.d/x.list": "deb http://mirror.test/debian stable main\n"},
     ("http://mirror.test/debian", "")),
    ({"sources.list.d/off.sources": "Enabled: no\n" + DEB822.split("\n\n")[1]}, None),
    ({"sources.list.d/off.sources.disabled": DEB822}, None),
    ({"sources.list.d/key.sources":
      "Types: deb\nURIs: http://mirror.test/debian/\nSuites: bookworm\nComponents: main\n"
      "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n"},
     ("http://mirror.test/debian/", "\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc")),
    ({}, None)])
def test_the_entry_of_the_archive_is_found_in_both_forms(tmp_path, files, wanted):
    (tmp_path / "sources.list.d").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert sources.find(str(tmp_path)) == wanted


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of its own, and a recipe of its own in place of the long one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SLIPWAY_KUBERNETES", raising=False)
    monkeypatch.setattr(debian, "check", lambda version: None)
    monkeypatch.setattr(debian, "HERE", str(tmp_path))
    monkeypatch.setattr(modules, "HERE", str(tmp_path))
    monkeypatch.setattr(sources, "find", lambda: ("http://mirror.test/debian", "/keys/d.gpg"))
    monkeypatch.setattr(build, "_try", lambda assets, folder, version: None)

    def recipe(text):
        for name in ("recipe-debian", "recipe-modules"):
            file = tmp_path / name
            file.write_text("#!/bin/sh\nset -eu\n" + text)
            file.chmod(file.stat().st_mode | stat.S_IXUSR)
    recipe('mkdir -p "$WORK/out"; echo "$VERSION $1" >>"$XDG_CACHE_HOME/steps"\n'
           + "".join('printf x >"$WORK/out/%s"; chmod +x "$WORK/out/%s"\n' % (name, name)
                     for name in build.PROGRAMS))
    return recipe


def leftovers():
    return [name for name in os.listdir(build.cache_parent()) if name.startswith("build.")]


def steps(tmp_path):
    return (tmp_path / "steps").read_text().splitlines()


def test_a_build_is_cached_whole_and_made_once(cache, tmp_path, capsys):
    assert build.ensure() is True
    assert sorted(os.listdir(build.cache_dir())) == sorted(build.PROGRAMS)
    assert steps(tmp_path) == ["v1.20.2 " + name for name, label in debian.STEPS]
    assert leftovers() == []
    said = capsys.readouterr().out
    assert "[1/6] fetching" in said and "[6/6] trying it" in said and build.log_file() in said
    assert build.ensure() is False
    assert build.ensure(force=True) is True
    assert leftovers() == []


def test_a_step_that_fails_is_told_and_nothing_is_cached(cache):
    cache('[ "$1" != generate ] || { echo "the reason"; exit 7; }\n')
    with pytest.raises(Problem) as told:
        build.ensure()
    assert "step 3 of 6, generating code, failed with status 7" in str(told.value)
    assert "the reason" in str(told.value) and build.log_file() in str(told.value)
    assert not build.is_cached() and leftovers() == []


def test_a_trial_that_fails_is_told_and_nothing_is_cached(cache, monkeypatch):
    def fail(assets, folder, version):
        raise Problem("the new server failed the trial")
    monkeypatch.setattr(build, "_try", fail)
    with pytest.raises(Problem, match="failed the trial"):
        build.ensure()
    assert not build.is_cached() and leftovers() == []


def test_builds_wait_for_each_other(cache, tmp_path):
    results = []
    threads = [threading.Thread(target=lambda: results.append(build.ensure())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(results) == [False, False, True]
    assert len(steps(tmp_path)) == len(debian.STEPS)


def test_what_a_killed_build_left_is_removed(cache):
    os.makedirs(os.path.join(build.cache_parent(), "build.dead", "sub"))
    os.chmod(os.path.join(build.cache_parent(), "build.dead", "sub"), 0o500)
    build.ensure()
    assert leftovers() == []


def test_without_debian_it_says_what_would_do(cache, monkeypatch):
    monkeypatch.setattr(sources, "find", lambda: None)
    with pytest.raises(Problem) as told:
        build.ensure()
    assert "no entry for the Debian archive" in str(told.value)
    assert "KUBEBUILDER_ASSETS" in str(told.value) and "--version" in str(told.value)


def test_releases_are_cached_beside_each_other(cache, tmp_path, monkeypatch):
    monkeypatch.setattr(modules, "check", lambda version: None)
    assert build.ensure() is True
    assert build.ensure("v1.9.30") is True
    assert build.ensure("v1.36.3") is True
    assert build.ensure("v1.36.3") is False
    assert steps(tmp_path)[-1] == "v1.36.3 controller-manager"
    assert len(steps(tmp_path)) == len(debian.STEPS) + 2 * len(modules.STEPS)
    assert build.cached() == ["v1.36.3", "v1.20.2", "v1.9.30"]
    assert sorted(os.listdir(build.cache_dir("v1.36.3"))) == sorted(build.PROGRAMS)
    assert leftovers() == []


def test_which_release_is_asked_for(cache, monkeypatch):
    monkeypatch.setattr(modules, "check", lambda version: None)
    monkeypatch.setattr(modules, "newest", lambda prefix: prefix + ".99")
    assert build.cached() == []
    assert build.asked() == "v1.20.2"
    assert build.asked("v1.36.3") == build.asked("1.36.3") == "v1.36.3"
    assert build.asked("1.36") == "v1.36.99"
    for version in ("v1.36.3", "v1.36.10", "v1.3.4"):
        build.ensure(version)
    assert build.asked("1.36") == "v1.36.10"
    monkeypatch.setenv("SLIPWAY_KUBERNETES", "1.3")
    assert build.asked() == "v1.3.4" and build.cache_dir().endswith("/v1.3.4")
    assert build.asked("1.35.1") == "v1.35.1"
    for wrong in ("1", "latest", "1.36.3-rc.1", "2.1.0", "1.36.3 "):
        with pytest.raises(Problem, match="no release of Kubernetes"):
            build.asked(wrong)


def test_two_sources_of_programs_at_once_are_refused(cache, tmp_path, monkeypatch):
    build.ensure()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", build.cache_dir())
    assert build.own_assets() == build.cache_dir()
    with pytest.raises(Problem, match="1.36 is asked for"):
        build.own_assets("1.36")
    monkeypatch.setenv("SLIPWAY_KUBERNETES", "1.35")
    with pytest.raises(Problem, match="1.35 is asked for"):
        build.own_assets()


def test_without_go_it_says_so(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Problem, match="v1.36.3 is built with Go, and there is no go on the PATH"):
        build.ensure("v1.36.3")
    with pytest.raises(Problem, match="there is no go on the PATH"):
        build.asked("1.36")
    assert leftovers() == []


def test_the_modules_of_a_release_are_those_its_own_file_names():
    own = {
        "Go": "1.26.0",
        "Require": [
            {"Path": "github.com/spf13/cobra", "Version": "v1.10.2"},
            {"Path": "k8s.io/api", "Version": "v0.0.0"},
            {"Path": "k8s.io/klog/v2", "Version": "v2.140.0"},
            {"Path": "go.etcd.io/etcd/server/v3", "Version": "v3.6.8", "Indirect": True}],
        "Replace": [
            {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
            {"Old": {"Path": "example.test/a", "Version": "v1.0.0"},
             "New": {"Path": "example.test/b", "Version": "v1.0.1"}}]}
    assert modules.module_file(own, "v1.36.3").splitlines() == [
        "module slipway/control-plane", "", "go 1.26.0", "",
        "require k8s.io/kubernetes v1.36.3",
        "require github.com/spf13/cobra v1.10.2",
        "require k8s.io/api v0.36.3",
        "require k8s.io/klog/v2 v2.140.0",
        "require go.etcd.io/etcd/server/v3 v3.6.8",
        "replace k8s.io/api => k8s.io/api v0.36.3",
        "replace example.test/a v1.0.0 => example.test/b v1.0.1"]


def test_a_users_projects_do_not_reach_into_the_build(monkeypatch):
    monkeypatch.setenv("GOFLAGS", "-mod=vendor")
    monkeypatch.setenv("GOWORK", "/home/somebody/go.work")
    monkeypatch.setenv("CGO_CFLAGS", "-O0")
    monkeypatch.setenv("GOOS", "plan9")
    monkeypatch.setenv("GOPROXY", "https://mirror.test")
    env = modules.go_environment("/work")
    assert env["GOPROXY"] == "https://mirror.test"
    assert env["GOWORK"] == "off" and "vendor" not in env["GOFLAGS"]
    assert "CGO_CFLAGS" not in env and "GOOS" not in env
    assert all(env[name].startswith("/work") for name in ("GOPATH", "GOMODCACHE", "GOCACHE"))


def test_a_long_step_is_heard_of(cache, monkeypatch, capsys):
    monkeypatch.setattr(build, "QUIET_S", 0.2)
    cache('[ "$1" != fetch ] || until [ -e "$XDG_CACHE_HOME/go-on" ]; do sleep 0.05; done\n'
          'mkdir -p "$WORK/out"\n')
    built = []
    thread = threading.Thread(target=lambda: built.append(build.ensure()))
    thread.start()
    said = []
    wait("a line in between", lambda: said.append(capsys.readouterr().out)
         or "fetching source and packages  still, after" in "".join(said))
    open(os.path.join(os.environ["XDG_CACHE_HOME"], "go-on"), "w").close()
    thread.join(60)
    assert built == [True]
