#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the root file system of the image from what is installed here.

usage: manifests/container/root.py INSTALLED ROOT

INSTALLED is where manifests/container/build has put slipway, ROOT a folder that is made. Of Debian's packages it takes
single files, and each as it came with its package; beside what slipway opens at run time these are

  /usr/share/doc/PACKAGE/copyright     their licences want to be handed on, with the texts that they name
  /var/lib/dpkg/status.d/PACKAGE       tells scanners which packages these files are from, as in other images without dpkg;
  /etc/debian_version, /etc/os-release without them a scanner finds nothing, and a vulnerability is not seen

The same packages and the same slipway give the same root, whatever the umask; SOURCE_DATE_EPOCH is the date of all of it.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from dpkg import ROOT, Database, Problem, canonical, walk  # noqa: E402

TREE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = "/usr/bin/slipway"
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
STATUS = "/var/lib/dpkg/status.d/"
# Ours, beside the program: where it is in the source tree.
OWN = {
    "/etc/passwd": "manifests/container/etc/passwd",
    "/etc/group": "manifests/container/etc/group",
    "/etc/nsswitch.conf": "manifests/container/etc/nsswitch.conf",
    "/usr/share/doc/slipway/copyright": "COPYING",
}
# Mount points: the configuration.
FOLDERS = ("/etc/slipway",)
IDENTITY = ("/etc/debian_version", "/etc/os-release")
SHARED_OBJECT = re.compile(r"(?:=> )?(/\S+) \(0x")
COMMON_LICENCE = re.compile(r"/usr/share/common-licenses/[\w.+-]*\w")


def libraries(program):
    """What it is linked with, by the path under which it looks for it. Name look-up needs no more: since glibc 2.34 "files" and
    "dns" are in libc.so.6 itself (https://sourceware.org/legacy-ml/libc-announce/2021/msg00000.html)."""
    said = subprocess.run(["ldd", program], check=True, text=True, stdout=subprocess.PIPE).stdout
    if "not found" in said:
        raise Problem("a library of slipway is missing:\n" + said)
    return SHARED_OBJECT.findall(said)


class Image:
    def __init__(self, root):
        self.root, self.debian, self.taken = pathlib.Path(root), Database(), set()
        self.root.mkdir(parents=True)

    def place(self, path):
        here = self.root / path.lstrip("/")
        here.parent.mkdir(parents=True, exist_ok=True)
        return here

    def write(self, path, content, mode=0o644):
        here = self.place(path)
        here.write_bytes(content)
        here.chmod(mode)

    def take(self, path):
        """A file of a package, as it came with it; with a symbolic link also where it leads. Returns False where that is nowhere."""
        path = canonical(path)
        owner, source = self.debian.owner(path), ROOT / path.lstrip("/")
        if not owner:
            raise Problem("%s is of no package" % path)
        if os.path.lexists(self.root / path.lstrip("/")):
            return True
        if source.is_symlink():
            leads_to = os.readlink(source)
            if not self.take_target(os.path.normpath(os.path.join(os.path.dirname(path), leads_to))):
                return False
            self.place(path).symlink_to(leads_to)
        else:
            owner.check(path, source)
            self.write(path, source.read_bytes(), 0o755 if os.access(source, os.X_OK) and path.startswith("/usr/lib") else 0o644)
        self.taken.add(owner.name)
        return True

    def take_target(self, path):
        source = ROOT / path.lstrip("/")
        return source.is_dir() or (source.exists() and self.debian.owner(path) is not None and self.take(path))

    def take_program(self, installed):
        self.write(PROGRAM, (pathlib.Path(installed) / PROGRAM.lstrip("/")).read_bytes(), 0o755)
        for path in libraries(self.root / PROGRAM.lstrip("/")):
            merged = re.match(r"/lib\w*(?=/)", path)
            if merged:
                self.take(merged.group())
            self.take(path)

    def take_certificates(self):
        """All that Debian trusts, from the package alone: the bundle in /etc here may hold authorities of this machine."""
        paths = sorted(path for path in self.debian.package("ca-certificates").paths if path.endswith(".crt") and "/mozilla/" in path)
        if not paths:
            raise Problem("ca-certificates has no certificates")
        for path in paths:
            self.debian.owner(path).check(path, path)
        self.write(BUNDLE, b"".join(pathlib.Path(path).read_bytes().rstrip() + b"\n" for path in paths))
        self.taken.add("ca-certificates")

    def take_time_zones(self):
        """All but links that lead out of the image, such as that to this machine's own zone."""
        for path in sorted(self.debian.package("tzdata").paths):
            source = pathlib.Path(path)
            if path.startswith("/usr/share/zoneinfo/") and (source.is_symlink() or source.is_file()):
                self.take(path)

    def take_licences(self):
        for name in sorted(self.taken | {"base-files"}):
            path = self.debian.package(name).copyright
            self.take(path)
            for licence in COMMON_LICENCE.findall((self.root / path.lstrip("/")).read_text()):
                if os.path.exists(licence):
                    self.take(licence)

    def tell_packages(self):
        for name in sorted(self.taken):
            fields = self.debian.package(name).fields
            text = "".join("%s: %s\n" % (key, value) for key, value in fields.items() if key != "Conffiles")
            self.write(STATUS + name, text.encode())

    def settle(self):
        """Folders for all to read, and one date."""
        epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or 0)
        found = [here for _, here in walk(self.root)]
        for here in [*reversed(found), self.root]:
            if here.is_dir() and not here.is_symlink():
                here.chmod(0o755)
            os.utime(here, (epoch, epoch), follow_symlinks=False)


def make(installed, root):
    image = Image(root)
    image.take_program(installed)
    image.take_certificates()
    image.take_time_zones()
    for path in IDENTITY:
        image.take(path)
    for path, source in OWN.items():
        image.write(path, (TREE / source).read_bytes())
    for path in FOLDERS:
        (image.root / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
    image.take_licences()
    image.tell_packages()
    image.settle()


def main():
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stdout if sys.argv[1:] in (["-h"], ["--help"]) else sys.stderr)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    try:
        make(*sys.argv[1:])
    except (Problem, OSError, subprocess.CalledProcessError) as problem:
        print("manifests/container/root.py: %s" % problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
