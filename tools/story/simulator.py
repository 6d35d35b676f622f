# SPDX-License-Identifier: Apache-2.0
"""slipway-sim as a process: the same to its users as an instance of the real control plane."""

import base64
import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))

from control_plane import api, build  # noqa: E402
from story.access import Failed  # noqa: E402
from story.certificate import make_certificate  # noqa: E402

TOKEN = "admin"
START_S = 60


def find_kubectl():
    """The one that came with the real control plane, or that on the PATH, or Debian's, installed now."""
    for found in (os.path.join(build.cache_dir(), "kubectl"), shutil.which("kubectl")):
        if found and os.access(found, os.X_OK):
            return found
    subprocess.run([TOP / "tools" / "packages", "kubectl"], check=True, stdin=subprocess.DEVNULL)
    return shutil.which("kubectl")


def listened_on(options):
    """The hosts that a certificate has to name because --listen does; what means every address is the loopback to its clients."""
    hosts = [address.rpartition(":")[0].strip("[]") for name, address in zip(options, options[1:]) if name == "--listen"]
    return [{"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host) for host in hosts]


class Simulator:
    """A folder with certificates, a kubeconfig and a process that serves. Several may load one that another has started."""

    @staticmethod
    def start(folder, program, *options, hosts=()):
        """options: more arguments of slipway-sim; hosts: more names for its certificate."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        make_certificate(folder / "certs", [*listened_on(options), *hosts])
        log = folder / "slipway-sim.log"
        with open(log, "wb") as out:
            process = subprocess.Popen(
                [program, "--tls-cert-file", folder / "certs" / "tls.crt", "--tls-key-file", folder / "certs" / "tls.key",
                 "--token", TOKEN, *options],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=out, text=True, start_new_session=True)
        ready, _, _ = select.select([process.stdout], [], [], START_S)
        line = process.stdout.readline() if ready else ""
        process.stdout.close()
        if not line:
            process.kill()
            process.wait()
            raise Failed("slipway-sim does not start:\n" + log.read_text())
        (folder / "state.json").write_text(json.dumps(dict(json.loads(line), pid=process.pid)))
        found = Simulator(folder)
        found.process = process
        return found

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.ca_file = str(self.folder / "certs" / "ca.crt")
        state = json.loads((self.folder / "state.json").read_text())
        self.server, self.kubelets_url, self.pid = state["server"], state["admin"], state["pid"]
        self.process = None  # of those that have not started it
        (self.folder / "kubeconfig").write_text(self.kubeconfig({"token": TOKEN}))

    def client(self):
        return api.Client(self.server, self.ca_file, TOKEN)

    def kubeconfig(self, user, server=None, cluster=None, namespace=None):
        """As that of control_plane.instance."""
        context = {"cluster": "slipway", "user": "user"}
        if namespace:
            context["namespace"] = namespace
        return json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "slipway",
            "clusters": [{"name": "slipway", "cluster": dict(cluster or {"certificate-authority": self.ca_file}, server=server or self.server)}],
            "users": [{"name": "user", "user": user}],
            "contexts": [{"name": "slipway", "context": context}],
        }, indent=2) + "\n"

    def embedded_ca(self):
        return {"certificate-authority-data": base64.b64encode(pathlib.Path(self.ca_file).read_bytes()).decode()}

    def environment(self):
        return {"KUBECONFIG": str(self.folder / "kubeconfig"), "SLIPWAY_KUBECTL": find_kubectl()}

    def resident_mib(self):
        with open("/proc/%d/status" % self.pid) as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS:"))

    def stop(self):
        """Its exit status, where this process has started it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        if not self.process:
            return None
        try:
            return self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
