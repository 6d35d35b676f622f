# SPDX-License-Identifier: Apache-2.0
"""The programs of the control plane: made once from Debian's packages, then taken from a cache.

The recipe (bash) does the work, a step a call; this file keeps the rest in order: one build at a
time, progress that can be seen, a folder to work in that is gone afterwards, a trial of the
result, and a cache that holds either a whole tried set or nothing. The trial creates a custom
resource on the new server, because that is what a wrong build fails at while all else works.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from . import api, instance, sources
from .problem import Problem

VERSION = "v1.20.2"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
HERE = os.path.dirname(os.path.abspath(__file__))
# 2.7 GB at most at once: the tree, Go and its cache of objects, the results.
NEEDED_DISK = 4 * 10 ** 9
QUIET_S = 30

STEPS = (
    ("fetch", "fetching source and packages"),
    ("unpack", "unpacking"),
    ("generate", "generating code"),
    ("apiserver", "compiling kube-apiserver"),
    ("controller-manager", "compiling kube-controller-manager"),
)


def cache_parent():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "slipway", "control-plane")


def cache_dir():
    return os.path.join(cache_parent(), VERSION)


def log_file():
    return os.path.join(cache_parent(), VERSION + ".log")


def own_assets():
    """The folder that KUBEBUILDER_ASSETS names, checked; None where it is not set."""
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    if not folder:
        return None
    missing = [name for name in PROGRAMS if not os.access(os.path.join(folder, name), os.X_OK)]
    if missing:
        raise Problem(
            "KUBEBUILDER_ASSETS=%s lacks %s" % (folder, ", ".join(missing)),
            "put %s of the same release there (envtest's archives come without "
            "kube-controller-manager), or unset the variable to use the cached build"
            % ("them" if len(missing) > 1 else "one"))
    return os.path.realpath(folder)


def is_cached():
    return all(os.access(os.path.join(cache_dir(), name), os.X_OK) for name in PROGRAMS)


def ensure(force=False):
    """Builds unless the cache has it; True when something was built."""
    if is_cached() and not force:
        return False
    os.makedirs(cache_parent(), exist_ok=True)
    with open(os.path.join(cache_parent(), "lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another build is running; waiting for it (its log: %s)" % log_file(),
                  flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if is_cached():
                return False
        _build()
    return True


def _build():
    _install_packages()
    _remove_leftovers()
    free = shutil.disk_usage(cache_parent()).free
    if free < NEEDED_DISK:
        raise Problem("%s has %.1f GB free; the build takes up to %.0f GB (and leaves 0.3)"
                      % (cache_parent(), free / 1e9, NEEDED_DISK / 1e9),
                      "make room, or set XDG_CACHE_HOME to a folder elsewhere")
    work = tempfile.mkdtemp(prefix="build.", dir=cache_parent())
    try:
        _write_sources(work)
        progress = Progress(len(STEPS) + 1, log_file())
        for name, label in STEPS:
            progress.run(label, [os.path.join(HERE, "recipe"), name],
                         dict(os.environ, WORK=work, VERSION=VERSION))
        progress.call("trying it: a custom resource on the new server",
                      lambda: _try(os.path.join(work, "out"), os.path.join(work, "trial")))
        if os.path.lexists(cache_dir()):
            os.rename(cache_dir(), os.path.join(work, "replaced"))
        os.rename(os.path.join(work, "out"), cache_dir())
        print("built in %s: %s" % (_clock(progress.elapsed_s()), cache_dir()), flush=True)
    finally:
        _remove_tree(work)


def _install_packages():
    # It says what it installs, and asks for sudo's password where it needs one: not into a log.
    tool = os.path.join(os.path.dirname(HERE), "packages")
    if subprocess.run([tool, "control-plane"]).returncode != 0:
        raise Problem("Debian packages that the build needs are missing",
                      "install them by hand; %s --list control-plane names them" % tool)


def _remove_leftovers():
    """Folders of builds that were killed; we hold the lock, so nobody works in them."""
    for name in os.listdir(cache_parent()):
        if name.startswith("build."):
            _remove_tree(os.path.join(cache_parent(), name))


def _remove_tree(path):
    # Go makes some of its folders read-only.
    subprocess.run(["chmod", "-R", "u+w", path], stderr=subprocess.DEVNULL)
    shutil.rmtree(path, ignore_errors=True)


def _write_sources(work):
    found = sources.find()
    if not found:
        raise Problem(
            "no entry for the Debian archive (component main) in /etc/apt/sources.list or "
            "/etc/apt/sources.list.d",
            "the build needs Debian's source package kubernetes %s; on another system point "
            "KUBEBUILDER_ASSETS at a folder with %s" % (VERSION[1:], ", ".join(PROGRAMS)))
    uri, signed_by = found
    os.makedirs(os.path.join(work, "apt"))
    with open(os.path.join(work, "apt", "debian.sources"), "w") as file:
        # This suite whatever the machine's: the recipe is for its version of kubernetes.
        file.write("Types: deb deb-src\nURIs: %s\nSuites: bookworm bookworm-updates\n"
                   "Components: main\n" % uri)
        if signed_by:
            file.write("Signed-By: %s\n" % signed_by)


def _try(assets, folder):
    """A control plane from `assets`, a CRD and one object of it."""
    trial = instance.Instance(folder)
    try:
        trial.up({"assets": assets, "kubelets": "off"})
        client = trial.client()
        client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "trials.slipway.dev"},
            "spec": {
                "group": "slipway.dev", "scope": "Namespaced",
                "names": {"plural": "trials", "singular": "trial", "kind": "Trial"},
                "versions": [{
                    "name": "v1", "served": True, "storage": True,
                    "schema": {"openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {
                            "type": "object",
                            "additionalProperties": {"type": "string"}}}}}}]}})
        path = "/apis/slipway.dev/v1/namespaces/default/trials"
        _until_served(client, path)
        client.post(path, {"apiVersion": "slipway.dev/v1", "kind": "Trial",
                           "metadata": {"name": "one"}, "spec": {"a": "b"}})
        spec = client.get(path + "/one").get("spec")
        if spec != {"a": "b"}:
            raise Problem("the trial's custom resource came back as %r" % (spec,))
        version = client.get("/version")["gitVersion"]
        if version != VERSION:
            raise Problem("the new server calls itself %s, not %s" % (version, VERSION))
    except api.BROKEN + (api.ApiError,) as error:
        raise Problem("the new server failed the trial: %s" % error,
                      log=os.path.join(trial.log_dir, "kube-apiserver.log")) from None
    finally:
        trial.down(keep_logs=True)


def _until_served(client, path):
    deadline = time.monotonic() + 60
    while True:
        try:
            client.get(path)
            return
        except api.ApiError as error:
            if error.status != 404 or time.monotonic() > deadline:
                raise
        time.sleep(0.1)


class Progress:
    """Which step of how many, how long it takes, and where its log is.

    On a terminal one line that is kept up to date; elsewhere a line at the start of each step and
    another every half minute.
    """

    def __init__(self, steps, log):
        self._steps = steps
        self._step = 0
        self._log = log
        self._began = time.monotonic()
        self._live = sys.stdout.isatty()
        with open(log, "w"):
            pass
        print("building the control plane once; 3 to 6 minutes on two cores; log: %s" % log,
              flush=True)

    def elapsed_s(self):
        return time.monotonic() - self._began

    def run(self, label, argv, env):
        with self._shown(label) as show:
            with open(self._log, "ab") as log:
                child = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=log,
                                         stderr=subprocess.STDOUT, start_new_session=True)
            try:
                while True:
                    try:
                        child.wait(1.0)
                        break
                    except subprocess.TimeoutExpired:
                        show()
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                raise
        if child.returncode != 0:
            raise Problem("step %d of %d, %s, failed with status %d"
                          % (self._step, self._steps, label, child.returncode),
                          "the whole log: " + self._log, log=self._log, lines=25)

    def call(self, label, function):
        with self._shown(label):
            try:
                function()
            except Problem as problem:
                with open(self._log, "a") as log:
                    log.write(str(problem) + "\n")
                raise

    @contextlib.contextmanager
    def _shown(self, label):
        self._step += 1
        began = time.monotonic()
        head = "[%d/%d] %s" % (self._step, self._steps, label)
        with open(self._log, "a") as log:
            log.write("== %s\n" % head)
        told = [began]

        def show():
            now = time.monotonic()
            if self._live:
                width = shutil.get_terminal_size().columns - 1
                line = "%s  %s (%s in all)" % (head, _clock(now - began),
                                               _clock(self.elapsed_s()))
                sys.stdout.write("\r\033[K" + line[:width])
                sys.stdout.flush()
            elif now - told[0] >= QUIET_S:
                told[0] = now
                print("%s  still, after %s (%s in all)"
                      % (head, _clock(now - began), _clock(self.elapsed_s())), flush=True)

        if self._live:
            show()
        else:
            print(head, flush=True)
        try:
            yield show
        except BaseException:
            if self._live:
                print(flush=True)
            raise
        line = "%s  done in %s" % (head, _clock(time.monotonic() - began))
        print(("\r\033[K" if self._live else "") + line, flush=True)


def _clock(seconds):
    return "%d:%02d" % divmod(int(seconds), 60)
