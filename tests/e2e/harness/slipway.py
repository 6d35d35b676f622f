# SPDX-License-Identifier: Apache-2.0
"""A slipway process: started as a person would, stopped, killed, suspended; and what it said."""

import http.client
import os
import pathlib
import shutil
import signal
import subprocess

from .cluster import TOP  # puts tools/ on the path
from control_plane.ports import free_port  # noqa: E402
from story.certificate import make_certificate  # noqa: E402
from .promise import promised
from .wait import until

BUILD = pathlib.Path(os.environ.get("SLIPWAY_BUILD") or TOP / "build")
NO_KEY = r'there is no \"PRIVATE KEY\" in it'  # said of a file that is half written


class Mounted:
    """A folder as the kubelet keeps that of a ConfigMap: each name leads into ..data, which is swapped for another."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.path.mkdir(parents=True)
        self.number = 0

    def publish(self, files):
        """All its files, by name; "modules.d/a.yaml" is one in a folder."""
        self.number += 1
        data = self.path / ("..%d" % self.number)
        data.mkdir()
        for name, text in files.items():
            (data / name).parent.mkdir(exist_ok=True)
            (data / name).write_text(text)
        tops = {name.partition("/")[0] for name in files}
        (self.path / "..data_tmp").symlink_to(data.name)
        os.replace(self.path / "..data_tmp", self.path / "..data")
        for link in [entry for entry in self.path.iterdir() if entry.is_symlink() and not entry.name.startswith("..")]:
            if link.name not in tops:
                link.unlink()
        for name in tops:
            if not (self.path / name).is_symlink():
                (self.path / name).symlink_to("..data/" + name)
        if self.number > 1:
            shutil.rmtree(self.path / ("..%d" % (self.number - 1)))


class Slipway:
    """One process. `server` and `ca_file` put a proxy between it and the API server; `token` is another user's than that of
    the role, `clock` a WallClock. `everywhere`: it looks at all namespaces, not at this one only. Its metrics are plain, so that
    whoever looks needs no token, unless `metrics_secure`."""

    def __init__(self, cluster, namespace, folder, name="slipway", server=None, ca_file=None, leader_elect=False,
                 config=None, lease_id=None, token=None, clock=None, settings="", everywhere=False,
                 metrics_secure=False):
        self.cluster, self.namespace, self.name = cluster, namespace, name
        self.folder = pathlib.Path(folder) / name
        self.folder.mkdir(parents=True)
        self.log_path = self.folder / "log"
        self.webhook_port, self.health_port, self.metrics_port = free_port(), free_port(), free_port()
        self.ca_pem = make_certificate(self.folder / "certs")
        token = token or cluster.token()
        (self.folder / "kubeconfig").write_text(cluster.kubeconfig(namespace, server, ca_file, token))
        self.settings = Mounted(self.folder / "config")
        self.settings.publish({"slipway.yaml": settings})
        self.modules = Mounted(self.folder / "config" / "modules.d")
        self.modules.publish({module + ".yaml": text for module, text in (config or {}).items()})
        self.argv = [
            str(BUILD / "slipway"), "--config", str(self.settings.path / "slipway.yaml"), "--kubeconfig", str(self.folder / "kubeconfig"),
            *([] if everywhere else ["--namespace", namespace]), "--log-format", "json", "--log-level", "debug",
            "--webhook-bind-address", "127.0.0.1:%d" % self.webhook_port, "--webhook-cert-dir", str(self.folder / "certs"),
            "--health-probe-bind-address", "127.0.0.1:%d" % self.health_port,
            "--metrics-bind-address", "127.0.0.1:%d" % self.metrics_port, "--metrics-secure=%s" % str(metrics_secure).lower(),
        ]
        self.is_metrics_secure = metrics_secure
        self.leader_elect = leader_elect
        if leader_elect:
            self.argv += ["--leader-elect", "--leader-election-id", lease_id or "slipway"]
        self.env = dict(os.environ, **(clock.environment() if clock else {}))
        self.process = None
        self.overlap_s = 0.0  # that it has counted, as far as it was stopped and not killed
        self.secrets = [part for part in (token, *token.split(".")[1:]) if part] + key_lines(self.folder / "certs" / "tls.key")

    @property
    def webhook_url(self):
        return "https://127.0.0.1:%d/mutate-apps-v1-deployment" % self.webhook_port

    def start(self, wait=True):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                            env=self.env)
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self, timeout_s=30):
        until(lambda: self.get(self.health_port, "/readyz")[0] == 200 or self._must_live(),
              lambda: "%s ready: %s\n%s" % (self.name, self.get(self.health_port, "/readyz?verbose"), self.log_tail()), timeout_s)

    def _must_live(self):
        code = self.process.poll()
        assert code is None, "%s ended with %s\n%s" % (self.name, code, self.log_tail())
        return False

    def get(self, port, path):
        """(status, text); status 0 where nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=15)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def metric(self, name, labels=""):
        """The sum over all series of the name whose text contains `labels`."""
        total = 0.0
        for line in self.get(self.metrics_port, "/metrics")[1].splitlines():
            series, _, value = line.rpartition(" ")
            if series.partition("{")[0] == name and labels in series:
                total += float(value)
        return total

    @property
    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """SIGKILL, as a lost node would."""
        process, self.process = self.process, None
        process.kill()
        process.wait()

    def until_ended(self, code):
        """That it ends by itself, in an unusual way."""
        assert self.process.wait(90) == code, self.log_tail()
        self.process = None

    @property
    def is_leading(self):
        return self.is_running and self.metric("leader_election_master_status") == 1

    @property
    def is_in_charge(self):
        """Leads, or is ready where there is no lease to have."""
        return self.is_leading if self.leader_elect else self.is_running and self.get(self.health_port, "/readyz")[0] == 200

    def until_leading(self, timeout_s=40):
        until(lambda: self.is_leading or self._must_live(), lambda: "%s leads\n%s" % (self.name, self.log_tail()), timeout_s)

    def suspend(self):
        self.signal(signal.SIGSTOP)

    def resume(self):
        self.signal(signal.SIGCONT)

    def stop(self, timeout_s=90):
        """SIGTERM; it must end by itself, with 0 (a leak found by a sanitizer is another code)."""
        if self.process is None:
            return
        if self.is_running:
            self.signal(signal.SIGCONT)
            self.overlap_s += 0 if self.is_metrics_secure else self.metric("slipway_overlap_seconds_total")
            self.signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("%s did not stop within %d s\n%s" % (self.name, timeout_s, self.log_tail())) from None
        self.process = None
        assert code == 0, "%s ended with %d\n%s" % (self.name, code, self.log_tail())

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def log_tail(self, lines=40):
        return "\n".join(self.log().splitlines()[-lines:])

    def check_log(self):
        for bad in ("AddressSanitizer", "LeakSanitizer", "runtime error:", "assertion", "handles were left open"):
            promised(bad not in self.log(), lambda bad=bad: "%r in the log of %s:\n%s" % (bad, self.name, self.log_tail(80)))
        self.check_secrets(self.secrets)

    def check_secrets(self, secrets):
        """None of these is in the log, which is at level debug, nor anything that looks like one."""
        log = self.log().replace(NO_KEY, "")
        for secret in [*secrets, "PRIVATE KEY", "Bearer ey"]:
            promised(secret not in log, "%s has logged a secret, %s..." % (self.name, secret[:12]))


def key_lines(path):
    """Those of a PEM file that hold key material."""
    return [line for line in path.read_text().splitlines() if len(line) > 20 and not line.startswith("-----")]


def resident_kib(process):
    for line in open("/proc/%d/status" % process.pid):
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


__all__ = ["Mounted", "Slipway", "free_port", "key_lines", "make_certificate", "resident_kib"]
