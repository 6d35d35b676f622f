# SPDX-License-Identifier: Apache-2.0
"""Runs the image as a kubelet would, as far as that needs no container engine: its root read-only, its user, no new
privileges, and mounted what the kubelet mounts. Processes and network are those of this machine."""

import pathlib
import subprocess

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
# Mounts are private and end with the process; each exec keeps the process, so that signals reach slipway.
SCRIPT = """
    root=$1 user=$2 count=$3
    shift 3
    mount --bind "$root" "$root"
    mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
    mount -t tmpfs -o mode=755,nosuid tmpfs "$root/dev"
    for name in null zero random urandom; do
        : >"$root/dev/$name"
        mount --bind "/dev/$name" "$root/dev/$name"
    done
    while [ "$count" -gt 0 ]; do
        mount --bind "$1" "$root$2"
        mount -o remount,bind,ro "$root$2"
        shift 2
        count=$((count - 1))
    done
    mount -o remount,bind,ro "$root"
    exec setpriv --no-new-privs /usr/sbin/chroot --userspec="$user" --groups= "$root" "$@"
"""


class Container:
    """root: its root file system, unpacked, which keeps the mount points; config: that of the image."""

    def __init__(self, root, config):
        self.root, self.config, self.mounts = pathlib.Path(root), config["config"], {}
        for name in ("proc", "dev"):
            (self.root / name).mkdir(exist_ok=True)

    def mount(self, source, path):
        """A file or folder of this machine, read-only. A runtime makes what is missing of the path, and so does this."""
        target, source = self.root / path.lstrip("/"), pathlib.Path(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.mkdir(exist_ok=True) if source.is_dir() else target.touch()
        self.mounts[path] = source

    def argv(self, *args, program=None):
        """program: instead of the image's entry point."""
        mounts = [word for path, source in self.mounts.items() for word in (source, path)]
        return ["unshare", "--mount", "--propagation", "private", "sh", "-euc", SCRIPT, "sh", self.root, self.config["User"],
                str(len(self.mounts)), *mounts, *(program or self.config["Entrypoint"]), *args]

    def start(self, *args, log, env):
        """The process is slipway itself."""
        with open(log, "ab") as out:
            return subprocess.Popen(self.argv(*args), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=env)

    def run(self, *args, env=None, program=None):
        """The finished process, with what it said."""
        return subprocess.run(self.argv(*args, program=program), stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=env or {}, timeout=120)
