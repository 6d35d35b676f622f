# SPDX-License-Identifier: Apache-2.0
"""The programs of the control plane: made once, then taken from a cache.

Which release it is decides how: 1.20.2 from Debian's packages (debian), any other from its Go
modules (modules). Their recipes do the work, a step a call; this file keeps the rest in order: one
build at a time, progress that can be seen, a folder to work in that is gone afterwards, a trial of
the result, and a cache that for each release holds either a whole tried set or nothing. The trial
creates a custom resource on the new server, because that is what a wrong build fails at while all
else works.
"""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from . import api, debian, instance, modules
from .problem import Problem

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
QUIET_S = 30


def cache_parent():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "slipway", "control-plane")


def cache_dir(version=None):
    """Of the release that SLIPWAY_KUBERNETES names, unless told another; that need not be there."""
    return os.path.join(cache_parent(), version or asked())


def log_file(version=None):
    return cache_dir(version) + ".log"


def is_cached(version=None):
    return all(os.access(os.path.join(cache_dir(version), name), os.X_OK) for name in PROGRAMS)


def cached():
    """The releases in the cache, the newest first."""
    with contextlib.suppress(FileNotFoundError):
        found = [name for name in os.listdir(cache_parent())
                 if re.fullmatch(r"v\d+\.\d+\.\d+", name) and is_cached(name)]
        return sorted(found, key=lambda name: [int(part) for part in name[1:].split(".")],
                      reverse=True)
    return []


def asked(text=None):
    """"vX.Y.Z" of `text`, or of SLIPWAY_KUBERNETES, or Debian's. X.Y alone is the newest such in the
    cache, or else the newest there is."""
    text = text or os.environ.get("SLIPWAY_KUBERNETES") or debian.VERSION
    found = re.fullmatch(r"v?(1\.\d+)(\.\d+)?", text)
    if not found:
        raise Problem('"%s" is no release of Kubernetes, such as 1.36.3 or 1.36' % text)
    if found[2]:
        return "v" + found[1] + found[2]
    begin = "v" + found[1]
    return next((name for name in cached() if name.startswith(begin + ".")), None) \
        or modules.newest(begin)


def own_assets(version=None):
    """The folder that KUBEBUILDER_ASSETS names, checked; None where it is not set."""
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    if not folder:
        return None
    version = version or os.environ.get("SLIPWAY_KUBERNETES")
    if version:
        raise Problem("KUBEBUILDER_ASSETS=%s is set, and Kubernetes %s is asked for"
                      % (folder, version), "unset the one you do not mean")
    missing = [name for name in PROGRAMS if not os.access(os.path.join(folder, name), os.X_OK)]
    if missing:
        raise Problem(
            "KUBEBUILDER_ASSETS=%s lacks %s" % (folder, ", ".join(missing)),
            "put %s of the same release there (envtest's archives come without "
            "kube-controller-manager), or unset the variable to use the cached build"
            % ("them" if len(missing) > 1 else "one"))
    return os.path.realpath(folder)


def ensure(version=None, force=False):
    """Builds unless the cache has it; True when something was built."""
    version = version or asked()
    if is_cached(version) and not force:
        return False
    os.makedirs(cache_parent(), exist_ok=True)
    with open(os.path.join(cache_parent(), "lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another build is running; waiting for it (logs: %s)" % cache_parent(),
                  flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if is_cached(version):
                return False
        _build(version, debian if version == debian.VERSION else modules)
    return True


def _build(version, how):
    how.check(version)
    _remove_leftovers()
    free = shutil.disk_usage(cache_parent()).free
    if free < how.NEEDED_DISK:
        raise Problem("%s has %.1f GB free; the build takes up to %.0f GB (and leaves 0.3)"
                      % (cache_parent(), free / 1e9, how.NEEDED_DISK / 1e9),
                      "make room, or set XDG_CACHE_HOME to a folder elsewhere")
    work = tempfile.mkdtemp(prefix="build.", dir=cache_parent())
    try:
        how.prepare(work)
        print("building Kubernetes %s once; %s; log: %s" % (version, how.TAKES, log_file(version)),
              flush=True)
        progress = Progress(len(how.STEPS) + 1, log_file(version))
        for name, label in how.STEPS:
            progress.run(label, how.command(name), dict(os.environ, WORK=work, VERSION=version))
        progress.call("trying it: a custom resource on the new server",
                      lambda: _try(os.path.join(work, "out"), os.path.join(work, "trial"), version))
        if os.path.lexists(cache_dir(version)):
            os.rename(cache_dir(version), os.path.join(work, "replaced"))
        os.rename(os.path.join(work, "out"), cache_dir(version))
        print("built in %s: %s" % (_clock(progress.elapsed_s()), cache_dir(version)), flush=True)
    finally:
        _remove_tree(work)


def _remove_leftovers():
    """Folders of builds that were killed; we hold the lock, so nobody works in them."""
    for name in os.listdir(cache_parent()):
        if name.startswith("build."):
            _remove_tree(os.path.join(cache_parent(), name))


def _remove_tree(path):
    # Go makes some of its folders read-only.
    subprocess.run(["chmod", "-R", "u+w", path], stderr=subprocess.DEVNULL)
    shutil.rmtree(path, ignore_errors=True)


def _try(assets, folder, version):
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
        says = client.get("/version")["gitVersion"]
        if says != version:
            raise Problem("the new server calls itself %s, not %s" % (says, version))
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
            # 429 is what newer servers say while they make the storage of the new kind.
            if error.status not in (404, 429) or time.monotonic() > deadline:
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
