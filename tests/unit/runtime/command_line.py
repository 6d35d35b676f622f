#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The executable as a shell sees it: what it prints where, its exit status, and SIGTERM while it waits for an API server.

    command_line.py SLIPWAY
"""

import contextlib
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

SLIPWAY = os.path.abspath(sys.argv[1])
SAMPLE = pathlib.Path(__file__).resolve().parents[3] / "manifests" / "samples" / "configuration"
GUARD_S = 60  # nothing here takes a second


def kubeconfig(port):
    return """
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "http://127.0.0.1:%d"}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
users: [{name: a, user: {token: t}}]
current-context: a
""" % port


class Case:
    """A folder with an empty slipway.yaml, and an API server that never answers."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.write("slipway.yaml", "")
        self.write("kubeconfig", kubeconfig(self.server.getsockname()[1]))

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def argv(self, *flags):
        return [SLIPWAY, *flags]

    def run(self, *flags, status, stdout=subprocess.PIPE):
        done = subprocess.run(self.argv(*flags), stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True,
                              timeout=GUARD_S, env=dict(os.environ, HOME=str(self.folder)))
        assert done.returncode == status, (flags, done)
        return done

    def config(self):
        return ("--config", str(self.folder / "slipway.yaml"))

    @contextlib.contextmanager
    def running(self, *flags):
        """A process, and until(line): waits for that in its log."""
        child = subprocess.Popen(
            self.argv(*self.config(), "--kubeconfig", str(self.folder / "kubeconfig"), "--webhook-bind-address", "0",
                      "--health-probe-bind-address", "0", "--metrics-bind-address", "127.0.0.1:0", "--log-format", "json", *flags),
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

        def until(line):
            for text in child.stderr:
                if line in text:
                    return text
            raise AssertionError("never said: " + line)
        guard = threading.Timer(GUARD_S / 2, child.kill)
        guard.start()
        try:
            yield child, until
        finally:
            guard.cancel()
            child.kill()
            child.wait()
            child.stderr.close()

    def run_until(self, line, *flags):
        """Tells it to stop once that is in its log; the rest of the log, and the exit status."""
        with self.running(*flags) as (child, until):
            until(line)
            child.send_signal(signal.SIGTERM)
            return child.communicate(timeout=GUARD_S)[1], child.returncode


def help_and_version_go_to_stdout(case):
    assert "--check-config" in case.run("--help", status=0).stdout
    assert "--dry-run" in case.run("release-all", "--help", status=0).stdout
    assert case.run("--version", status=0).stdout.startswith("slipway ")
    assert "coordination" in case.run("--list-modules", *case.config(), status=0).stdout
    assert "good; modules: pausing, coordination, events" in case.run("--check-config", *case.config(), status=0).stdout


def what_nobody_can_read_is_a_failure(case):
    with open("/dev/full", "w") as full:
        for flags in ["--help"], ["--version"], ["--list-modules", *case.config()], ["--check-config", *case.config()]:
            assert "cannot write" in case.run(*flags, status=1, stdout=full).stderr


def a_mistake_ends_with_status_2(case):
    assert "did you mean --list-modules?" in case.run("--list-module", status=2).stderr
    assert "there is no command" in case.run("go", status=2).stderr
    for wrong in "soon", "0s", "-1m":
        assert '--time-limit: expected a time such as 4m or 90s, got "%s"' % wrong in case.run("release-all", "--time-limit=" + wrong, status=2).stderr
    case.run("--config", str(case.folder / "absent.yaml"), status=2)
    case.write("slipway.yaml", "log:\n  level: loud\n")
    assert "slipway.yaml:2: log.level: expected one of" in case.run(*case.config(), status=2).stderr
    case.write("slipway.yaml", "modules:\n- coordination\n")
    assert "slipway.yaml:2: modules: module coordination needs module pausing" in case.run(*case.config(), status=2).stderr
    case.write("slipway.yaml", "")
    case.write("modules.d/coordination.yaml", "\natRest: Sometimes\n")
    for flags in [], ["--check-config"]:
        assert "coordination.yaml:2: atRest: expected" in case.run(*case.config(), *flags, status=2).stderr
    case.write("modules.d/coordination.yaml", "")
    case.write("modules.d/coordinaton.yaml", "")
    assert "did you mean coordination.yaml?" in case.run(*case.config(), "--check-config", status=2).stderr


def what_is_no_mistake_but_fails_ends_with_status_1(case):
    nowhere = ("--kubeconfig", str(case.folder / "kubeconfig"))
    taken = "127.0.0.1:%d" % case.server.getsockname()[1]
    quiet = ("--webhook-bind-address", "0", "--metrics-bind-address", "0")
    log = case.run(*case.config(), *nowhere, *quiet, "--health-probe-bind-address", taken, status=1).stderr
    assert "address already in use" in log


def the_sample_is_good_and_has_every_key(case):
    """Also with the keys that are commented out there."""
    case.run("--config", str(SAMPLE / "slipway.yaml"), "--check-config", status=0)
    text = re.sub(r"^( *)# (\w+: )", r"\1\2", (SAMPLE / "slipway.yaml").read_text(), flags=re.M)
    case.write("slipway.yaml", text)
    shutil.copytree(SAMPLE / "modules.d", case.folder / "modules.d")
    case.write("slipway.yaml", re.sub("(?m)^moduleDir: .*", "", text))
    case.run(*case.config(), "--check-config", status=0)
    keys = re.findall(r"\[key (\S+?)[],]", case.run("--help", status=0).stdout)
    assert len(keys) > 10
    for key in keys:
        assert re.search(r"(?m)^ *%s:" % key.rpartition(".")[2], text), key


def it_leaves_no_core_file(case):
    """That would hold the token. Where this machine keeps none anyway, of a shell for example, nothing is shown."""
    def leaves_core(argv):
        child = subprocess.Popen(argv, cwd=case.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)))
        child.stdout.readline()
        child.send_signal(signal.SIGABRT)
        _, status = os.waitpid(child.pid, 0)
        child.stdout.close()
        return os.WCOREDUMP(status)
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if not leaves_core(["sh", "-c", "echo ready; exec sleep 60"]):
        print("# this machine keeps no core files at all", flush=True)
    assert not leaves_core([*case.argv(), *case.config(), "--kubeconfig", str(case.folder / "kubeconfig"), "--webhook-bind-address", "0",
                            "--health-probe-bind-address", "0", "--metrics-bind-address", "0"])


def sigterm_ends_it_while_the_api_server_is_awaited(case):
    case.write("slipway.yaml", "leaderElection: {leaseDuration: 1s, renewDeadline: 500ms, retryPeriod: 100ms}\n")
    for flags in [], ["--leader-elect"]:
        for line in '"starting"', '"using API server"', '"module":"events"':
            log, status = case.run_until(line, *flags)
            assert status == 0 and '"stopped"' in log, (line, flags, status, log)


def sighup_reads_the_configuration_again(case):
    with case.running("--kube-api-qps", "7") as (child, until):
        until('"starting"')
        child.send_signal(signal.SIGHUP)  # waits until there is something to read it for
        assert '"applied":"nothing new"' in until("configuration read again")
        case.write("slipway.yaml", "log: {level: warn}\nclient: {qps: 8, burst: 9}\nnamespace: other\n")
        case.write("modules.d/coordination.yaml", "atRest: Running\n")
        child.send_signal(signal.SIGHUP)
        assert '"applied":"modules.d/coordination.yaml, log.level, client.burst"' in until("configuration read again")
        assert '"keys":"namespace"' in until("changed, and applies after a restart")
        case.write("modules.d/coordination.yaml", "\natRest: Sometimes\n")
        child.send_signal(signal.SIGHUP)
        assert "coordination.yaml:2: atRest: expected" in until("configuration cannot be used, keeping the one in force")


def a_change_of_a_file_is_seen(case):
    with case.running() as (child, until):
        until('"module":"events"')
        case.write("modules.d/coordination.yaml", "atRest: Running\n")
        assert '"applied":"modules.d/coordination.yaml"' in until("configuration read again")


def sigusr1_logs_everything_until_the_next_one(case):
    with case.running() as (child, until):
        until('"starting"')
        case.write("slipway.yaml", "log: {level: error}\n")
        assert '"applied":"log.level"' in until("configuration read again")
        child.send_signal(signal.SIGUSR1)
        assert '"configured":"error"' in until("logging everything until told again")
        child.send_signal(signal.SIGUSR1)
        assert '"level":"error"' in until("logging as configured again")


def neither_disturbs_it_when_it_stops(case):
    for number in signal.SIGHUP, signal.SIGUSR1:
        with case.running() as (child, until):
            until('"module":"events"')
            child.send_signal(signal.SIGTERM)
            while child.poll() is None:
                child.send_signal(number)
            assert child.returncode == 0, (number, child.returncode)


CASES = [
    help_and_version_go_to_stdout,
    what_nobody_can_read_is_a_failure,
    a_mistake_ends_with_status_2,
    what_is_no_mistake_but_fails_ends_with_status_1,
    the_sample_is_good_and_has_every_key,
    it_leaves_no_core_file,
    sigterm_ends_it_while_the_api_server_is_awaited,
    sighup_reads_the_configuration_again,
    a_change_of_a_file_is_seen,
    sigusr1_logs_everything_until_the_next_one,
    neither_disturbs_it_when_it_stops,
]


def main():
    print("1..%d" % len(CASES))
    failed = 0
    for number, function in enumerate(CASES, 1):
        with tempfile.TemporaryDirectory() as folder:
            case = Case(folder)
            try:
                function(case)
                verdict = "ok"
            except Exception as error:  # whatever it is, the others are run
                verdict = "not ok"
                failed += 1
                print("# %s: %s" % (type(error).__name__, error), file=sys.stderr)
            finally:
                case.server.close()
        print("%s %d - command line: %s" % (verdict, number, function.__name__), flush=True)
    return 1 if failed else 0


sys.exit(main())
