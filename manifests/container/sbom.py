#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the bill of materials of the image: SPDX 2.3, as JSON.

usage: manifests/container/sbom.py ROOT FILE

ROOT is what manifests/container/root.py made; FILE is written. Every file of the root is looked up anew: it is slipway's own,
or one that came with a package of Debian and was not changed since. A file that is neither is an error, and so is the image.

https://spdx.github.io/spdx-spec/v2.3/. REVISION (of the source) and SOURCE_DATE_EPOCH are taken from the environment.
"""

import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from dpkg import Database, Problem, digest, walk  # noqa: E402
from licences import Licence  # noqa: E402
from root import BUNDLE, OWN, PROGRAM, STATUS, libraries  # noqa: E402

OURS = {PROGRAM, *OWN}
NOTHING = "NOASSERTION"
CA_COMMENT = "the certificates of the package, one behind the other"


def identifier(kind, name):
    return "SPDXRef-%s-%s" % (kind, re.sub(r"[^A-Za-z0-9.-]", "-", name))


class Contents:
    """The files of the root by package; "" is slipway. Symbolic links count as files that must be accounted for, but SPDX has no
    entry for them."""

    def __init__(self, root):
        self.debian, self.files = Database(), {"": []}
        self.root = pathlib.Path(root)
        if not (self.root / PROGRAM.lstrip("/")).is_file():
            raise Problem("%s has no %s: it is none that root.py made" % (root, PROGRAM))
        strangers = []
        for path, here in walk(self.root):
            if here.is_symlink() or not here.is_dir():
                name = self.belongs_to(path, here)
                if name is None:
                    strangers.append(path)
                elif not here.is_symlink():
                    self.files.setdefault(name, []).append((path, here))
        if strangers:
            raise Problem("of no package, and not slipway's:\n  " + "\n  ".join(strangers))

    def belongs_to(self, path, here):
        if path in OURS or (path.startswith(STATUS) and path[len(STATUS):] in self.debian.packages):
            return ""
        if path == BUNDLE:
            return "ca-certificates"
        owner = self.debian.owner(path)
        if owner and not here.is_symlink():
            owner.check(path, here)
        return owner.name if owner else None


class Document:
    def __init__(self, contents):
        self.contents, self.debian = contents, contents.debian
        self.files, self.packages, self.relations, self.texts = [], [], [], {}
        program = contents.root / PROGRAM.lstrip("/")
        self.version = subprocess.run([program, "--version"], check=True, text=True, stdout=subprocess.PIPE).stdout.split()[1]
        self.revision = os.environ.get("REVISION") or "unknown"
        self.distribution = dict(re.findall(r'^(ID|VERSION_ID)="?([^"\n]*)', pathlib.Path("/etc/os-release").read_text(), re.M))
        self.linked = {self.debian.owner(path).name for path in libraries(program)}
        self.add_slipway()
        for name in sorted(set(contents.files) - {""}):
            self.add_package(self.debian.package(name))
        self.add_image()

    def relate(self, one, what, other):
        self.relations.append({"spdxElementId": one, "relationshipType": what, "relatedSpdxElement": other})

    def add_files(self, package, files):
        """The package's code is that of its files that are here: SHA-1 of their sums in order (section 7.9)."""
        for path, here in files:
            entry = {
                # By the path's sum: the names of time zones differ in what no identifier may contain.
                "SPDXID": identifier("File", hashlib.sha256(path.encode()).hexdigest()[:20]), "fileName": "." + path,
                "checksums": [{"algorithm": name.upper(), "checksumValue": digest(here, name)} for name in ("sha1", "sha256")],
                "licenseConcluded": NOTHING, "licenseInfoInFiles": [NOTHING], "copyrightText": NOTHING,
            }
            if path == BUNDLE:
                entry["comment"] = CA_COMMENT
            self.files.append(entry)
            self.relate(package["SPDXID"], "CONTAINS", entry["SPDXID"])
        sums = sorted(digest(here, "sha1") for _, here in files)
        package["packageVerificationCode"] = {"packageVerificationCodeValue": hashlib.sha1("".join(sums).encode()).hexdigest()}
        self.packages.append(package)

    def add_slipway(self):
        self.add_files({
            "SPDXID": identifier("Package", "slipway"), "name": "slipway", "versionInfo": self.version,
            "downloadLocation": NOTHING, "filesAnalyzed": True, "primaryPackagePurpose": "APPLICATION",
            "sourceInfo": "built from revision " + self.revision, "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
            "licenseInfoFromFiles": [NOTHING], "copyrightText": NOTHING,
            "externalRefs": [self.locator("pkg:generic/slipway@%s" % self.version)],
        }, self.contents.files[""])

    @staticmethod
    def locator(purl):
        return {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}

    def purl(self, package):
        """https://github.com/package-url/purl-spec, type deb."""
        source, version = package.source
        options = {"arch": package.architecture, "distro": "%s-%s" % (self.distribution["ID"], self.distribution["VERSION_ID"])}
        if (source, version) != (package.name, package.version):
            options["upstream"] = source if version == package.version else "%s@%s" % (source, version)
        return "pkg:deb/%s/%s@%s?%s" % (self.distribution["ID"], urllib.parse.quote(package.name, safe=""),
                                        urllib.parse.quote(package.version, safe=""), urllib.parse.urlencode(options))

    def add_package(self, package):
        licence = Licence(package.name, (self.contents.root / package.copyright.lstrip("/")).read_text())
        self.texts.update(licence.texts)
        entry = {
            "SPDXID": identifier("Package", package.name), "name": package.name, "versionInfo": package.version,
            "supplier": "Organization: Debian", "originator": self.maintainer(package), "downloadLocation": NOTHING,
            "filesAnalyzed": True, "primaryPackagePurpose": "LIBRARY" if package.name in self.linked else "FILE",
            "sourceInfo": "source package %s %s" % package.source, "summary": package.fields["Description"].partition("\n")[0],
            "licenseConcluded": NOTHING, "licenseDeclared": licence.expression, "licenseInfoFromFiles": [NOTHING],
            "copyrightText": licence.holders or NOTHING, "comment": "of the files of this package the image has those listed here",
            "externalRefs": [self.locator(self.purl(package))],
        }
        if package.fields.get("Homepage"):
            entry["homepage"] = package.fields["Homepage"]
        self.add_files(entry, self.contents.files[package.name])
        self.relate(identifier("Package", "slipway"), "DYNAMIC_LINK" if package.name in self.linked else "DEPENDS_ON", entry["SPDXID"])

    @staticmethod
    def maintainer(package):
        name, _, address = package.fields["Maintainer"].partition(" <")
        return "Organization: %s (%s)" % (name.strip('"'), address.rstrip(">"))

    def add_image(self):
        image = {"SPDXID": "SPDXRef-Image", "name": "slipway-image", "versionInfo": self.version, "downloadLocation": NOTHING,
                 "filesAnalyzed": False, "primaryPackagePurpose": "CONTAINER", "licenseConcluded": NOTHING,
                 "licenseDeclared": NOTHING, "copyrightText": NOTHING}
        for package in self.packages:
            self.relate(image["SPDXID"], "CONTAINS", package["SPDXID"])
        self.packages.insert(0, image)
        self.relate("SPDXRef-DOCUMENT", "DESCRIBES", image["SPDXID"])

    def as_dict(self):
        created = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH") or 0), datetime.timezone.utc)
        found = {
            "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "slipway-" + self.version,
            "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: slipway-sbom-" + self.version]},
            "packages": self.packages, "files": self.files, "relationships": self.relations,
            "hasExtractedLicensingInfos": [{"licenseId": name, "extractedText": text} for name, text in sorted(self.texts.items())],
        }
        # Each document has a name of its own; the same contents have the same.
        sums = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()
        return dict(found, documentNamespace="https://slipway.dev/spdx/slipway-%s-%s" % (self.version, sums[:32]))


def main():
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stdout if sys.argv[1:] in (["-h"], ["--help"]) else sys.stderr)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    try:
        text = json.dumps(Document(Contents(sys.argv[1])).as_dict(), indent=2, ensure_ascii=False) + "\n"
        pathlib.Path(sys.argv[2]).write_text(text, encoding="utf-8")
    except (Problem, OSError, subprocess.CalledProcessError) as problem:
        print("manifests/container/sbom.py: %s" % problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
