# SPDX-License-Identifier: Apache-2.0
"""Any other release of Kubernetes, from its Go modules: what its build needs, and its steps
(recipe-modules).

k8s.io/kubernetes is no module that others are meant to require: it names its own libraries
(k8s.io/api and thirty more) as v0.0.0 and finds them in its own tree, which the module does not
hold. They are published one by one, release v1.X.Y as v0.X.Y, so a module of ours that says so for
each of them, and takes every other requirement as it stands in Kubernetes' go.mod, compiles what
the release was made of. etcd's server is among those requirements.
"""

import os
import re
import shutil
import subprocess
import tempfile

from .problem import Problem

HERE = os.path.dirname(os.path.abspath(__file__))
KUBERNETES = "k8s.io/kubernetes"
# 4 GB at most at once: the modules, Go's cache of objects, the results.
NEEDED_DISK = 6 * 10 ** 9
TAKES = "10 to 25 minutes on two cores"
# Kept from the user's environment, since they say how modules are reached, not what is compiled.
REACHING = ("GOPROXY", "GONOPROXY", "GOPRIVATE", "GOSUMDB", "GONOSUMDB", "GOINSECURE", "GOAUTH",
            "GOVCS", "GOENV", "GOROOT", "GOTOOLCHAIN")

STEPS = (
    ("list", "asking which modules the release is made of"),
    ("fetch", "fetching modules"),
    ("etcd", "compiling etcd"),
    ("kubectl", "compiling kubectl"),
    ("apiserver", "compiling kube-apiserver"),
    ("controller-manager", "compiling kube-controller-manager"),
)
PACKAGES = {
    "etcd": ("etcd", "go.etcd.io/etcd/server/v3"),
    "kubectl": ("kubectl", KUBERNETES + "/cmd/kubectl"),
    "apiserver": ("kube-apiserver", KUBERNETES + "/cmd/kube-apiserver"),
    "controller-manager": ("kube-controller-manager", KUBERNETES + "/cmd/kube-controller-manager"),
}


def check(version):
    """What the build needs is on the machine; or Problem."""
    find_go(version)
    if not shutil.which("openssl"):
        raise Problem("openssl is missing", "install it; the new server is tried with it")


def command(step):
    return [os.path.join(HERE, "recipe-modules"), step]


def prepare(work):
    """Everything is fetched by the steps."""


def find_go(version):
    go = shutil.which("go")
    if not go:
        raise Problem(
            "Kubernetes %s is built with Go, and there is no go on the PATH" % version,
            "install Go, of the version that this release wants or newer; without --version it is "
            "1.20.2 from Debian's packages; or point KUBEBUILDER_ASSETS at a folder with the programs")
    return go


def go_environment(work):
    """What Go is run with: nothing of the user's own projects, all results within `work`."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("GO", "CGO_")) or name in REACHING}
    env.update(GO111MODULE="on", GOWORK="off", GOFLAGS="-mod=mod -modcacherw", CGO_ENABLED="0",
               GOPATH=os.path.join(work, "go"), GOMODCACHE=os.path.join(work, "modules"),
               GOCACHE=os.path.join(work, "go-cache"), GOTMPDIR=work, GOBIN="")
    return env


def newest(prefix):
    """The newest release "vX.Y.Z" that begins with `prefix` ("vX.Y"), as Go is told."""
    go = find_go(prefix)
    with tempfile.TemporaryDirectory() as work:
        asked = subprocess.run(
            [go, "list", "-m", "-f", "{{.Version}}", "%s@%s" % (KUBERNETES, prefix)], cwd=work,
            env=go_environment(work), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    found = asked.stdout.strip()
    if asked.returncode != 0 or not re.fullmatch(r"v\d+\.\d+\.\d+", found):
        raise Problem("Go knows no release %s of Kubernetes: %s"
                      % (prefix, asked.stderr.strip() or found),
                      "name one in full, such as 1.36.3")
    return found


def module_file(kubernetes, version):
    """The go.mod that builds the release; `kubernetes` is its own one, as `go mod edit -json` prints it."""
    libraries = "v0." + version.removeprefix("v1.")
    lines = ["module slipway/control-plane", "", "go " + kubernetes["Go"], "",
             "require %s %s" % (KUBERNETES, version)]
    replaced = []
    for required in kubernetes["Require"]:
        path, wanted = required["Path"], required["Version"]
        if wanted == "v0.0.0":
            wanted = libraries
            replaced.append("replace %s => %s %s" % (path, path, libraries))
        lines.append("require %s %s" % (path, wanted))
    for one in kubernetes.get("Replace") or []:
        if one["New"].get("Version"):  # of the others it is the tree that is meant
            replaced.append("replace %s => %s %s" % (
                " ".join(filter(None, (one["Old"]["Path"], one["Old"].get("Version")))),
                one["New"]["Path"], one["New"]["Version"]))
    return "\n".join(lines + replaced) + "\n"


def stamp(version):
    """The flags for the linker; where /version and kubectl look, without them the server calls itself 0.0."""
    flags = ["-s", "-w"]
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        for name, value in (("gitVersion", version), ("gitMajor", "1"),
                            ("gitMinor", version.split(".")[1]), ("gitTreeState", "clean")):
            flags += ["-X", "%s.%s=%s" % (package, name, value)]
    return " ".join(flags)
