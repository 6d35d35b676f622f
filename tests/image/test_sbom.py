# SPDX-License-Identifier: Apache-2.0
"""The bill of materials: valid, complete, and made anew from what is there."""

import hashlib
import io
import re
import shutil
import subprocess
import tarfile

import pytest
from conftest import SBOM, TOP, run
from validator import validate

OWN = {"./usr/bin/slipway", "./etc/passwd", "./etc/group", "./etc/nsswitch.conf", "./usr/share/doc/slipway/copyright"}
BUNDLE = "./etc/ssl/certs/ca-certificates.crt"
STATUS = "./var/lib/dpkg/status.d/"


def packages(sbom):
    return {package["name"]: package for package in sbom["packages"]}


def related(sbom, what):
    return [(entry["spdxElementId"], entry["relatedSpdxElement"]) for entry in sbom["relationships"] if entry["relationshipType"] == what]


@pytest.fixture
def owners(sbom):
    """Path to the name of the package."""
    names = {package["SPDXID"]: package["name"] for package in sbom["packages"]}
    paths = {file["SPDXID"]: file["fileName"] for file in sbom["files"]}
    found = [(paths[file], names[package]) for package, file in related(sbom, "CONTAINS") if file in paths]
    assert len(found) == len(dict(found)) == len(paths), "each file is in one package"
    return dict(found)


def test_the_validator_of_spdx_finds_nothing(sbom, tmp_path):
    assert validate(SBOM) == (0, "")
    spoilt = tmp_path / "spoilt.spdx.json"
    spoilt.write_text(SBOM.read_text().replace('"SPDXRef-Package-libc6"', '"SPDXRef-Package-libc7"', 1))
    assert validate(spoilt)[0] != 0, "it does look"


def test_every_file_of_the_image_is_in_it_with_its_sum(sbom, image):
    (layer,) = image.layers()
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        real = {"./" + member.name: hashlib.sha256(tar.extractfile(member).read()).hexdigest() for member in tar if member.isfile()}
    told = {file["fileName"]: {entry["algorithm"]: entry["checksumValue"] for entry in file["checksums"]}["SHA256"] for file in sbom["files"]}
    assert told == real


def test_each_file_is_of_the_package_that_dpkg_names(sbom, owners):
    assert {path for path, name in owners.items() if name == "slipway" and not path.startswith(STATUS)} == OWN
    assert owners[BUNDLE] == "ca-certificates"
    rest = {path[1:]: name for path, name in owners.items() if name != "slipway" and path != BUNDLE}
    told = run("tools/debian13", "run", TOP, "dpkg-query", "-S", *rest)
    found = {path: name.partition(":")[0] for name, path in re.findall(r"^(\S+?): (/.*)$", told, re.M)}
    assert found == rest


def test_its_packages_are_those_that_were_installed(sbom, image):
    found = {name: package for name, package in packages(sbom).items() if name not in ("slipway", "slipway-image")}
    told = run("tools/debian13", "run", TOP, "dpkg-query", "-W", "-f", "${Package} ${Version} ${source:Package} ${source:Version}\n", *found)
    for name, version, source, source_version in (line.split() for line in told.splitlines()):
        assert found[name]["versionInfo"] == version and found[name]["sourceInfo"] == "source package %s %s" % (source, source_version)
        (purl,) = (entry["referenceLocator"] for entry in found[name]["externalRefs"])
        assert purl.startswith("pkg:deb/debian/%s@" % name) and "distro=debian-13" in purl
    assert {"libc6", "libuv1t64", "ca-certificates", "tzdata"} < set(found)
    mine = packages(sbom)["slipway"]
    assert mine["versionInfo"] == image.config()["config"]["Labels"]["org.opencontainers.image.version"]
    assert mine["sourceInfo"].endswith(image.config()["config"]["Labels"]["org.opencontainers.image.revision"])


def test_a_package_is_there_because_something_of_it_is(sbom, owners):
    names = {package["SPDXID"]: package["name"] for package in sbom["packages"]}
    assert {names[to] for _, to in related(sbom, "CONTAINS") if to in names} == set(names.values()) - {"slipway-image"}
    for name in set(names.values()) - {"slipway-image"}:
        assert [path for path, owner in owners.items() if owner == name and "/usr/share/doc/" not in path], name
    assert related(sbom, "DESCRIBES") == [("SPDXRef-DOCUMENT", "SPDXRef-Image")]
    linked = {names[to] for _, to in related(sbom, "DYNAMIC_LINK")}
    assert {"libc6", "libuv1t64", "libjansson4"} <= linked and not {"tzdata", "ca-certificates", "base-files"} & linked


def test_every_licence_is_named_or_quoted(sbom):
    quoted = {entry["licenseId"] for entry in sbom["hasExtractedLicensingInfos"] if entry["extractedText"].strip()}
    used = {word for package in sbom["packages"] for word in re.findall(r"LicenseRef-[\w.-]+", package["licenseDeclared"])}
    assert used == quoted
    declared = {name: package["licenseDeclared"] for name, package in packages(sbom).items()}
    assert declared["libjansson4"] == "MIT" and declared["libcyaml1"] == "ISC" and "LGPL-2.1-or-later" in declared["libc6"]
    assert all(text != "NOASSERTION" for name, text in declared.items() if name != "slipway-image")


def make_again(tmp_path, root):
    """sbom.py on a root that was unpacked, in the root of Debian 13 where it came from; a finished process."""
    work = tmp_path / "work"
    shutil.copytree(TOP / "manifests" / "container", work / "slipway" / "manifests" / "container")
    root.rename(work / "root")
    return subprocess.run([TOP / "tools" / "debian13", "run", work, "/src/slipway/manifests/container/sbom.py", "/src/root", "/src/out.json"], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def test_a_file_of_no_package_is_refused(own_root, tmp_path):
    (own_root / "usr/bin/stray").write_text("#!/bin/false\n")
    (own_root / "etc/slipway/left").symlink_to("/nowhere")
    done = make_again(tmp_path, own_root)
    assert done.returncode == 1 and "of no package, and not slipway's:\n  /etc/slipway/left\n  /usr/bin/stray\n" in done.stdout, done.stdout


def test_a_file_that_was_changed_is_refused(own_root, tmp_path):
    with open(own_root / "usr/lib/os-release", "a") as file:
        file.write("changed\n")
    done = make_again(tmp_path, own_root)
    assert done.returncode == 1 and "/usr/lib/os-release is not as it came with base-files" in done.stdout, done.stdout
