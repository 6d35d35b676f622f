# SPDX-License-Identifier: Apache-2.0
"""What is in the image, how large it is, and that tools of others read it."""

import io
import json
import re
import subprocess
import tarfile

import pytest
from conftest import SBOM, TOP, run
from container import Container

LIMIT_MIB = 10
USER = 65532
# All that may be in it.
EXPECTED = re.compile("|".join((
    r"usr/bin/slipway",
    r"usr/lib/[a-z0-9_]+-linux-gnu\w*/(lib(c|cyaml|jansson|llhttp|mbedcrypto|mbedtls|mbedx509|uv|yaml-0)|ld-linux[\w-]*)\.so(\.\d+)*",
    r"lib(64)?", r"usr/lib64/ld-linux-x86-64\.so\.2",
    r"etc/ssl/certs/ca-certificates\.crt",
    r"usr/share/zoneinfo/[\w/+.-]+",
    r"etc/(passwd|group|nsswitch\.conf)",
    # Licences, and what scanners read.
    r"usr/share/doc/[a-z0-9.+-]+/copyright", r"usr/share/common-licenses/[\w.-]+",
    r"etc/(debian_version|os-release)", r"usr/lib/os-release", r"var/lib/dpkg/status\.d/[a-z0-9.+-]+",
)))


@pytest.fixture(scope="session")
def members(image):
    (layer,) = image.layers()
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        return tar.getmembers()


def test_a_node_has_little_to_fetch(image, archive):
    assert image.size() <= LIMIT_MIB * 2**20, "%.2f MiB" % (image.size() / 2**20)
    assert run("tools/image", "size").startswith("%s: %.2f MiB to fetch" % (archive, image.size() / 2**20))


def test_nothing_is_in_it_that_need_not_be(members):
    files = [member for member in members if not member.isdir()]
    assert [member.name for member in files if not EXPECTED.fullmatch(member.name)] == []
    programs = {member.name.rpartition("/")[2].partition(".")[0] for member in files if member.isfile() and member.mode & 0o111}
    assert programs - {"ld-linux-x86-64", "ld-linux-aarch64"} == {"slipway", "libc"}, "the dynamic linker, libc, which tells its version, and slipway"
    assert {member.name for member in members if member.isdir()} >= {"etc/slipway"}, "where the configuration is mounted"


def test_all_of_it_is_roots_and_nobody_else_can_write(members):
    assert {(member.uid, member.gid) for member in members} == {(0, 0)}
    for member in members:
        assert member.issym() or member.mode in ((0o755,) if member.isdir() else (0o644, 0o755)), "%s: %o" % (member.name, member.mode)


def test_its_dates_are_that_of_the_source(members, image):
    assert len({member.mtime for member in members}) == 1
    assert image.config()["created"] == image.manifest["annotations"]["org.opencontainers.image.created"]


def test_no_link_leads_nowhere(root):
    for path in root.rglob("*"):
        if path.is_symlink():
            target = path.readlink()
            inside = root / str(target).lstrip("/") if target.is_absolute() else path.parent / target
            assert inside.exists(), "%s leads to %s" % (path, target)


def test_the_same_source_gives_the_same_bytes(archive, tmp_path):
    again = tmp_path / "again.oci.tar"
    done = subprocess.run(["sh", "-c", 'umask 077; exec tools/image build --output "$1"', "sh", again], cwd=TOP, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                                                                                                        "TZ": "Asia/Kathmandu", "HOME": "/root"})
    assert done.returncode == 0, done.stdout
    assert again.read_bytes() == archive.read_bytes()
    assert (tmp_path / "again.spdx.json").read_bytes() == SBOM.read_bytes()


def test_skopeo_reads_it_as_oci_and_as_docker_archive(archive, tmp_path):
    for kind in ("oci-archive", "docker-archive"):
        found = json.loads(run("skopeo", "inspect", "--config", "%s:%s" % (kind, archive)))
        assert found["config"]["User"] == "%d:%d" % (USER, USER) and found["config"]["Entrypoint"] == ["/usr/bin/slipway"], kind
        assert found["config"]["ExposedPorts"] == {"7712/tcp": {}, "7713/tcp": {}, "9443/tcp": {}}
        # Copying compares every digest.
        run("skopeo", "copy", "%s:%s" % (kind, archive), "dir:%s" % (tmp_path / kind))


def test_its_labels_say_what_it_is(image, root):
    labels = image.config()["config"]["Labels"]
    assert labels["org.opencontainers.image.title"] == "slipway" and labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    said = Container(root, image.config()).run("--version")
    assert said.stdout == "slipway %s\n" % labels["org.opencontainers.image.version"], "the version in the Containerfile is that of meson.build"
    revision = labels["org.opencontainers.image.revision"].removesuffix("-dirty")
    assert revision == run("git", "-c", "safe.directory=*", "rev-parse", "HEAD").strip()


def test_all_certificates_of_the_package_are_trusted(root):
    text = (root / "etc/ssl/certs/ca-certificates.crt").read_text()
    count = text.count("-----BEGIN CERTIFICATE-----\n")
    names = run("tools/debian13", "run", TOP, "dpkg", "-L", "ca-certificates")
    assert count == len(re.findall(r"^/usr/share/ca-certificates/.*\.crt$", names, re.M)) > 100
    told = subprocess.run(["openssl", "storeutl", "-noout", "-certs", root / "etc/ssl/certs/ca-certificates.crt"], text=True, capture_output=True)
    assert told.stdout.endswith("Total found: %d\n" % count), told.stdout + told.stderr


def test_the_program_is_hardened_as_it_is_told(root):
    """What docs/security.md says of it."""
    told = run("readelf", "--file-header", "--program-headers", "--dynamic", "--dyn-syms", "--wide", root / "usr/bin/slipway")
    assert re.search(r"Type:\s+DYN \(Position-Independent Executable", told)
    assert "GNU_RELRO" in told and re.search(r"\(FLAGS\)\s+BIND_NOW", told), "full RELRO"
    assert re.search(r"GNU_STACK.* RW  0x", told), "no stack that can be executed"
    assert " __stack_chk_fail@" in told, "stack protector"
    assert {"__memcpy_chk", "__vsnprintf_chk"} <= set(re.findall(r" (__\w+_chk)@", told)), "_FORTIFY_SOURCE"
    assert "RUNPATH" not in told and "RPATH" not in told, "libraries come from the system's folders alone"
