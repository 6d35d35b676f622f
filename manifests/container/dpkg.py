# SPDX-License-Identifier: Apache-2.0
"""What dpkg knows about the machine that this runs on: its packages, and which of them a file belongs to."""

import hashlib
import os
import pathlib
import re

ROOT = pathlib.Path("/")
# Debian's usr-merge: a package may name a file by either path. https://wiki.debian.org/UsrMerge
MERGED = re.compile(r"^/(bin|sbin|lib|lib64)/")


class Problem(Exception):
    """Its text is for whoever builds the image."""


def canonical(path):
    return MERGED.sub(r"/usr/\1/", path)


def paragraphs(text):
    """Of a file in the form of debian/control: fields by name, where continued lines keep their line breaks."""
    for paragraph in re.split(r"\n[ \t]*\n", text):
        fields, name = {}, None
        for line in paragraph.splitlines():
            if line.startswith("#"):
                continue
            if line[:1] in (" ", "\t") and name:
                fields[name] += "\n" + line
            elif ":" in line:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
        if fields:
            yield fields


def digest(path, algorithm):
    return hashlib.new(algorithm, pathlib.Path(path).read_bytes()).hexdigest()


class Package:
    def __init__(self, fields, info):
        self.fields, self.name, self.version, self.architecture = fields, fields["Package"], fields["Version"], fields["Architecture"]
        base = self.name if (info / (self.name + ".list")).exists() else "%s:%s" % (self.name, self.architecture)
        self.paths = {canonical(path) for path in (info / (base + ".list")).read_text().splitlines()}
        self.sums = {}  # MD5, as packages have it; of files that people may edit they are elsewhere
        sums = info / (base + ".md5sums")
        lines = [line.split(None, 1) for line in sums.read_text().splitlines()] if sums.exists() else []
        lines += [(line.split()[1], line.split()[0]) for line in fields.get("Conffiles", "").splitlines() if line.strip()]
        for value, path in lines:
            self.sums[canonical("/" + path.strip().lstrip("/"))] = value

    @property
    def source(self):
        """(name, version) of what it was built from."""
        name, _, version = self.fields.get("Source", self.name).partition(" ")
        return name, version.strip("()") or self.version

    @property
    def copyright(self):
        return "/usr/share/doc/%s/copyright" % self.name

    def check(self, path, content):
        """That the file is as it came with the package; symbolic links have no sum."""
        if path not in self.sums:
            raise Problem("%s: dpkg has no sum of it, though it belongs to %s" % (path, self.name))
        if digest(content, "md5") != self.sums[path]:
            raise Problem("%s is not as it came with %s %s" % (path, self.name, self.version))


class Database:
    def __init__(self):
        folder = ROOT / "var/lib/dpkg"
        if not (folder / "status").exists():
            raise Problem("there is no /var/lib/dpkg/status: this is to run on Debian, as the Containerfile does")
        self.packages = {}
        self.owners = {}
        for fields in paragraphs((folder / "status").read_text()):
            if fields["Status"].split()[-1] != "installed":
                continue
            package = Package(fields, folder / "info")
            self.packages[package.name] = package
            for path in package.paths:
                self.owners.setdefault(path, package)

    def owner(self, path):
        """The package that the file or symbolic link came with, or None. Folders have many."""
        return self.owners.get(canonical(path))

    def package(self, name):
        if name not in self.packages:
            raise Problem("the package %s is not installed: tools/packages image" % name)
        return self.packages[name]


def walk(root):
    """(path in the root, path here) of all that is below it, in the order of names; folders stand before what they contain."""
    for entry in sorted(os.scandir(root), key=lambda entry: entry.name):
        yield "/" + entry.name, pathlib.Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            for inside, here in walk(entry.path):
                yield "/" + entry.name + inside, here
