# SPDX-License-Identifier: Apache-2.0
"""One control plane in one folder: brought up, repaired, described, and taken down.

The folder holds everything: certificates, kubeconfigs, data, logs, and `state.json`, which says
what runs with which ports and options. Whoever changes the folder holds a lock on it, so that
two `up` at once become one. Four parts run, each of which needs the ones before it:

  etcd -> kube-apiserver -> kube-controller-manager
                         -> kubelets

`up` starts those that do not run. When a part had to be started on another port, those after it
are started again, because they were told the old one.
"""

import base64
import contextlib
import fcntl
import http.client
import json
import os
import re
import secrets
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import time
import urllib.parse

from . import api, certs, process
from .ports import free_port
from .problem import Problem

PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubelets")
CONTROLLERS = "deployment,replicaset,statefulset,daemonset,namespace,garbagecollector"
TOOLS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# A part is ready within seconds; on a machine that is busy with something else, later.
READY_TIMEOUT_S = 300
# A port that was free a moment ago can be taken; each try asks for another.
PORT_TRIES = 6

LOGS = tuple(name + ".log" for name in PARTS)
OURS = ("state.json", "state.json.new", "admin.kubeconfig", "admin-cert.kubeconfig",
        "admin.token", "tokens.csv", "pki", "etcd", "serving")


def default_dir():
    told = os.environ.get("SLIPWAY_CONTROL_PLANE")
    if told:
        return told
    parent = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("TMPDIR") or "/tmp"
    return os.path.join(parent, "slipway-control-plane-%d" % os.getuid())


class Instance:
    def __init__(self, folder, say=None):
        self.dir = os.path.realpath(folder)
        self.state = {}
        self._say = say or (lambda text: None)

    # -- the folder -------------------------------------------------------------------------

    def path(self, *names):
        return os.path.join(self.dir, *names)

    @property
    def log_dir(self):
        return self.path("logs")

    @property
    def server(self):
        return "https://127.0.0.1:%d" % self.state["ports"]["kube-apiserver"]

    @property
    def ca_file(self):
        return self.path("pki", "ca.crt")

    @property
    def kubelets_url(self):
        port = self.state["ports"].get("kubelets")
        return "http://127.0.0.1:%d" % port if port else None

    def client(self):
        with open(self.path("admin.token")) as file:
            return api.Client(self.server, self.ca_file, file.read().strip())

    def load(self):
        """True where the folder holds an instance."""
        try:
            with open(self.path("state.json")) as file:
                self.state = json.load(file)
        except FileNotFoundError:
            self.state = {}
            return False
        except ValueError as error:
            raise Problem("%s is damaged: %s" % (self.path("state.json"), error),
                          "tools/control-plane down --dir %s" % self.dir) from None
        return True

    def save(self):
        new = self.path("state.json.new")
        with open(new, "w") as file:
            json.dump(self.state, file, indent=2)
            file.write("\n")
        os.rename(new, self.path("state.json"))

    @contextlib.contextmanager
    def locked(self, create):
        """Holds the folder; yields False where it is not there and is not to be made."""
        while True:
            if create:
                os.makedirs(os.path.dirname(self.dir), exist_ok=True)
                with contextlib.suppress(FileExistsError):
                    os.mkdir(self.dir, 0o700)
            try:
                fd = os.open(self.dir, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except FileNotFoundError:
                yield False
                return
            except OSError as error:
                raise Problem("%s cannot be used as the folder: %s" % (self.dir, error.strerror),
                              "name another: --dir DIR") from None
            try:
                if os.fstat(fd).st_uid != os.getuid():
                    raise Problem("%s belongs to somebody else" % self.dir,
                                  "name another: --dir DIR")
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    self._say("%s: waiting for another up or down to finish" % self.dir)
                    fcntl.flock(fd, fcntl.LOCK_EX)
                # A `down` that we waited for has removed it; then this is a lock on nothing.
                if os.fstat(fd).st_nlink == 0:
                    continue
                yield True
                return
            finally:
                os.close(fd)

    def processes(self):
        return {name: process.Process.from_json(value)
                for name, value in self.state.get("processes", {}).items()}

    def running(self, name):
        found = self.processes().get(name)
        return found if found and found.is_alive() else None

    # -- up ---------------------------------------------------------------------------------

    def up(self, options):
        """Starts what does not run. Returns the names of the parts that were started.

        An option that is None was not asked for: it is as it was, or the default.
        """
        with self.locked(create=True):
            if self.load():
                self._compare_options(options)
            else:
                self._begin(options)
            self._check_assets()
            started = []
            try:
                self._prepare()
                self._start_all(started)
            except BaseException:
                # What this call has started ends with it, also what it had no time to write down; what ran before stays.
                self._stop_parts(started)
                self._stop_unknown()
                self.save()
                raise
            return started

    def _begin(self, options):
        foreign = sorted(set(os.listdir(self.dir)) - {"logs"})
        logs = os.listdir(self.log_dir) if os.path.isdir(self.log_dir) else []
        foreign += ["logs/" + name for name in logs if name not in LOGS]
        if foreign:
            raise Problem("%s is not empty (%s) and holds no control plane"
                          % (self.dir, ", ".join(foreign[:5])),
                          "name a new or an empty folder: --dir DIR")
        # Left by `down --keep`, and by one whose folder was removed while it ran.
        self._remove("logs")
        for stray in process.members(self.dir):
            stray.stop()
        self.state = {"options": {k: v for k, v in options.items() if v is not None},
                      "ports": {}, "processes": {}}
        self.save()

    def _compare_options(self, options):
        for name, value in options.items():
            if value is not None and value != self.state["options"].get(name):
                raise Problem(
                    "%s is up with %s %s, not %s"
                    % (self.dir, name, _shown(self.state["options"].get(name)), _shown(value)),
                    "tools/control-plane down --dir %s, then up again; or up with another --dir"
                    % self.dir)

    def _check_assets(self):
        for name in ("etcd", "kube-apiserver", "kube-controller-manager"):
            if not os.access(self._asset(name), os.X_OK):
                raise Problem("%s is missing or not executable" % self._asset(name),
                              "tools/control-plane build makes one; or complete the folder that "
                              "KUBEBUILDER_ASSETS names, or unset it")

    def _prepare(self):
        os.makedirs(self.log_dir, exist_ok=True)
        certs.make_all(self.path("pki"))
        if not os.path.exists(self.path("admin.token")):
            token = secrets.token_urlsafe(24)
            self._write("tokens.csv", '%s,admin,admin,"system:masters"\n' % token)
            self._write("admin.token", token)

    def _start_all(self, started):
        moved = False
        for name in PARTS:
            if name == "kubelets" and self.state["options"].get("kubelets") == "off":
                continue
            if self.running(name) and not moved:
                continue
            if self.running(name):
                self._stop_parts([name])
            before = self.state["ports"].get(name)
            started.append(name)
            self._start(name)
            moved = moved or before not in (None, self.state["ports"][name])
            if name == "kube-apiserver":
                self._write_kubeconfigs()

    def _start(self, name):
        log = os.path.join(self.log_dir, name + ".log")
        began = time.monotonic()
        for attempt in range(PORT_TRIES):
            self._choose_ports(name, again=attempt > 0)
            offset = os.path.getsize(log) if os.path.exists(log) else 0
            argv = getattr(self, "_argv_" + name.replace("-", "_"))()
            running, child = process.spawn(argv, log, self.dir)
            self.state["processes"][name] = running.to_json()
            self.save()
            if self._await(name, child, log):
                self._say("  %-24s ready after %.1f s  %s"
                          % (name, time.monotonic() - began, self.address(name)))
                return
            with open(log, errors="replace") as file:
                file.seek(offset)
                said = file.read()
            if "address already in use" not in said.lower():
                raise Problem("%s ended with status %d before it was ready"
                              % (name, child.returncode), "its log: " + log, log=log)
        raise Problem("%s found every port taken, %d times" % (name, PORT_TRIES), log=log)

    def address(self, name):
        port = self.state["ports"].get(name)
        scheme = "https" if name.startswith("kube-") else "http"
        return "%s://127.0.0.1:%d" % (scheme, port) if port else ""

    def _choose_ports(self, name, again):
        ports = self.state["ports"]
        if again or not _is_free(ports.get(name)):
            ports[name] = free_port()
        if name == "etcd" and (again or not _is_free(ports.get("etcd-peer"))):
            ports["etcd-peer"] = free_port()

    def _await(self, name, child, log):
        """True when the part answers, False when it has ended; Problem when neither comes."""
        ready = getattr(self, "_ready_" + name.replace("-", "_"))
        deadline = time.monotonic() + READY_TIMEOUT_S
        began = time.monotonic()
        told = began
        while not ready():
            if child.poll() is not None:
                return False
            now = time.monotonic()
            if now > deadline:
                raise Problem("%s was not ready within %d s" % (name, READY_TIMEOUT_S),
                              "its log: " + log, log=log)
            if now - told > 10:
                told = now
                self._say("  %-24s not ready yet after %.0f s; log: %s" % (name, now - began, log))
            time.sleep(0.03)
        # Whoever answers must be ours: with another's port ours has ended, or is about to.
        return child.poll() is None

    # -- the parts --------------------------------------------------------------------------

    def _argv_etcd(self):
        ports = self.state["ports"]
        client = "http://127.0.0.1:%d" % ports["etcd"]
        peer = "http://127.0.0.1:%d" % ports["etcd-peer"]
        return [
            self._asset("etcd"), "--name=slipway", "--data-dir=" + self.path("etcd"),
            "--listen-client-urls=" + client, "--advertise-client-urls=" + client,
            "--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
            "--initial-cluster=slipway=" + peer,
            # Nothing here outlives the machine, so nothing waits for its disk.
            "--unsafe-no-fsync", "--logger=zap", "--log-level=warn"]

    def _ready_etcd(self):
        return b'"true"' in (_http_get(self.state["ports"]["etcd"], "/health") or b"")

    def _argv_kube_apiserver(self):
        return [
            self._asset("kube-apiserver"),
            "--etcd-servers=http://127.0.0.1:%d" % self.state["ports"]["etcd"],
            "--bind-address=127.0.0.1",
            "--secure-port=%d" % self.state["ports"]["kube-apiserver"],
            # Without these a machine that has no network besides lo cannot start one; the
            # Service `kubernetes` has no endpoints then, and nothing here goes through it.
            "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
            "--cert-dir=" + self.path("serving"),
            "--tls-cert-file=" + self.path("pki", "apiserver.crt"),
            "--tls-private-key-file=" + self.path("pki", "apiserver.key"),
            "--client-ca-file=" + self.path("pki", "client-ca.crt"),
            "--token-auth-file=" + self.path("tokens.csv"),
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-account-key-file=" + self.path("pki", "service-accounts.pub"),
            "--service-account-signing-key-file=" + self.path("pki", "service-accounts.key"),
            "--service-cluster-ip-range=10.96.0.0/16",
            # Nobody here makes the ServiceAccount `default` that it would give to every Pod.
            "--disable-admission-plugins=ServiceAccount",
            "--profiling=false",
        ] + list(self.state["options"].get("apiserver-arg") or [])

    def _ready_kube_apiserver(self):
        if _https_get(self.state["ports"]["kube-apiserver"], "/readyz", self.ca_file) != b"ok":
            return False
        # It is "ready" a moment before it has made the namespaces that everybody takes for given.
        try:
            client = self.client()
            for name in ("default", "kube-system"):
                client.get("/api/v1/namespaces/" + name)
        except api.BROKEN + (api.ApiError,):
            return False
        return True

    def _argv_kube_controller_manager(self):
        kubeconfig = self.path("admin.kubeconfig")
        argv = [
            self._asset("kube-controller-manager"),
            "--kubeconfig=" + kubeconfig,
            "--authentication-kubeconfig=" + kubeconfig,
            "--authorization-kubeconfig=" + kubeconfig,
            "--bind-address=127.0.0.1",
            "--secure-port=%d" % self.state["ports"]["kube-controller-manager"],
            "--tls-cert-file=" + self.path("pki", "apiserver.crt"),
            "--tls-private-key-file=" + self.path("pki", "apiserver.key"),
            "--leader-elect=false",
            "--controllers=" + CONTROLLERS,
            "--service-account-private-key-file=" + self.path("pki", "service-accounts.key"),
            # Its own limit (20 requests a second) would be what a test with many workloads
            # measures.
            "--kube-api-qps=400", "--kube-api-burst=800",
            "--concurrent-deployment-syncs=10", "--concurrent-replicaset-syncs=10",
            "--profiling=false",
        ]
        if self._version("kube-controller-manager") < (1, 24):
            argv.append("--port=0")
        return argv + list(self.state["options"].get("controller-manager-arg") or [])

    def _ready_kube_controller_manager(self):
        port = self.state["ports"]["kube-controller-manager"]
        return _https_get(port, "/healthz", self.ca_file) == b"ok"

    def _argv_kubelets(self):
        options = self.state["options"]
        argv = [sys.executable, os.path.join(TOOLS, "kubelets"), "run", "--dir", self.dir,
                "--port", str(self.state["ports"]["kubelets"])]
        for name in ("nodes", "start", "stop"):
            if options.get(name) is not None:
                argv += ["--" + name, str(options[name])]
        return argv

    def _ready_kubelets(self):
        return _http_get(self.state["ports"]["kubelets"], "/healthz") == b"ok\n"

    def _asset(self, name):
        return os.path.join(self.state["options"]["assets"], name)

    def _version(self, name):
        out = subprocess.run([self._asset(name), "--version"],
                             capture_output=True, text=True).stdout
        found = re.search(r"v(\d+)\.(\d+)", out)
        return (int(found[1]), int(found[2])) if found else (1, 20)

    # -- what clients need ------------------------------------------------------------------

    def _write_kubeconfigs(self):
        with open(self.path("admin.token")) as file:
            token = file.read()
        self._write("admin.kubeconfig", self.kubeconfig({"token": token}))
        self._write("admin-cert.kubeconfig", self.kubeconfig({
            "client-certificate": self.path("pki", "admin.crt"),
            "client-key": self.path("pki", "admin.key")}))

    def kubeconfig(self, user, server=None, cluster=None, namespace=None):
        """The text of a kubeconfig; `user` and `cluster` are the fields of their entries."""
        cluster = cluster or {"certificate-authority": self.ca_file}
        lines = ["apiVersion: v1", "kind: Config", "clusters:", "- name: slipway", "  cluster:",
                 "    server: " + _quoted(server or self.server)]
        lines += ["    %s: %s" % (key, _quoted(value)) for key, value in cluster.items()]
        lines += ["users:", "- name: user", "  user:"]
        lines += ["    %s: %s" % (key, _quoted(value)) for key, value in user.items()]
        lines += ["contexts:", "- name: slipway", "  context:", "    cluster: slipway",
                  "    user: user"]
        if namespace:
            lines.append("    namespace: " + _quoted(namespace))
        lines.append("current-context: slipway")
        return "\n".join(lines) + "\n"

    def embedded_ca(self):
        with open(self.ca_file, "rb") as file:
            return {"certificate-authority-data": base64.b64encode(file.read()).decode()}

    def environment(self):
        values = {
            "KUBECONFIG": self.path("admin.kubeconfig"),
            "SLIPWAY_CONTROL_PLANE": self.dir,
            "SLIPWAY_CONTROL_PLANE_SERVER": self.server,
            "SLIPWAY_CONTROL_PLANE_CA": self.ca_file,
            "SLIPWAY_CONTROL_PLANE_TOKEN_FILE": self.path("admin.token"),
            "SLIPWAY_CONTROL_PLANE_CERT_KUBECONFIG": self.path("admin-cert.kubeconfig"),
        }
        if self.kubelets_url:
            values["SLIPWAY_KUBELETS"] = self.kubelets_url
        kubectl = self._asset("kubectl")
        if os.access(kubectl, os.X_OK):
            values["SLIPWAY_KUBECTL"] = kubectl
        return values

    def _write(self, name, text):
        file = self.path(name)
        with open(os.open(file + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as to:
            to.write(text)
        os.rename(file + ".new", file)

    # -- status, down -----------------------------------------------------------------------

    def parts(self):
        """(name, Process or None) of each part that should run."""
        wanted = [name for name in PARTS
                  if name != "kubelets" or self.state["options"].get("kubelets") != "off"]
        return [(name, self.running(name)) for name in wanted]

    def down(self, keep_logs):
        """Stops everything and removes the folder.

        Returns what is left in it, or None where there was nothing to take down.
        """
        with self.locked(create=False) as there:
            try:
                known = there and self.load()
            except Problem:
                # Damaged, but ours: the processes are found by their mark.
                known = True
                self.state = {}
            if known:
                self._stop_parts(PARTS)
            # One that was started but not written down, or whose folder was removed.
            strays = process.members(self.dir)
            for stray in strays:
                stray.stop()
            if not known:
                return [] if strays else None
            for name in OURS + (() if keep_logs else ("logs",)):
                self._remove(name)
            left = sorted(os.listdir(self.dir))
            if not left:
                os.rmdir(self.dir)
            return [self.path(name) for name in left]

    def _stop_parts(self, names):
        """From the last to the first, so that none complains of those it needs."""
        found = self.processes()
        for name in reversed(PARTS):
            if name in names and name in found:
                found[name].stop()
                del self.state["processes"][name]

    def _stop_unknown(self):
        known = {found.pid for found in self.processes().values()}
        for stray in process.members(self.dir):
            if stray.pid not in known:
                stray.stop()

    def _remove(self, name):
        path = self.path(name)
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISDIR(os.lstat(path).st_mode):
                shutil.rmtree(path)
            else:
                os.unlink(path)


def _shown(value):
    if value is None:
        return "not given"
    return " ".join(value) if isinstance(value, list) else str(value)


def _quoted(text):
    """A double-quoted YAML scalar; JSON's strings are a subset of those."""
    return json.dumps(text)


def _is_free(port):
    if not port:
        return False
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _http_get(port, path):
    return _get(http.client.HTTPConnection("127.0.0.1", port, timeout=5), path)


def _https_get(port, path, ca_file):
    tls = ssl.create_default_context(cafile=ca_file)
    return _get(http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=tls), path)


def _get(connection, path):
    """The body of a 200, or None: not there, not yet, not us."""
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        return body if answer.status == 200 else None
    except api.BROKEN:
        return None
    finally:
        connection.close()


def service_account_token(client, namespace, name, duration_s):
    path = "/api/v1/namespaces/%s/serviceaccounts/%s/token" % (
        urllib.parse.quote(namespace), urllib.parse.quote(name))
    try:
        answer = client.post(path, {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": duration_s}})
    except api.ApiError as error:
        if error.status == 404:
            raise Problem("there is no ServiceAccount %s in namespace %s" % (name, namespace),
                          "kubectl create serviceaccount %s -n %s" % (name, namespace)) from None
        raise Problem("no token for %s/%s: %s" % (namespace, name, error.message)) from None
    return answer["status"]["token"]
