# SPDX-License-Identifier: Apache-2.0
"""An image as an archive: an OCI image layout (https://github.com/opencontainers/image-spec/blob/v1.1.0/image-layout.md), with
the manifest.json beside it that older engines look for. The same folder gives the same bytes."""

import gzip
import hashlib
import io
import json
import pathlib
import tarfile

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


class Problem(Exception):
    """Its text is for the user."""


def _member(name, date, kind=tarfile.REGTYPE, mode=0o644, size=0, link=""):
    """Of root, with a date that does not depend on when it was written."""
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.size, member.linkname, member.mtime = kind, mode, size, link, date
    return member


def layer(root, date):
    """The tar of a folder: all of it owned by root, in the order of names."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for here in sorted(pathlib.Path(root).rglob("*"), key=lambda path: path.relative_to(root).as_posix().encode()):
            name = here.relative_to(root).as_posix()
            if here.is_symlink():
                tar.addfile(_member(name, date, tarfile.SYMTYPE, 0o777, link=str(here.readlink())))
            elif here.is_dir():
                tar.addfile(_member(name, date, tarfile.DIRTYPE, here.stat().st_mode & 0o7777))
            elif here.is_file():
                content = here.read_bytes()
                tar.addfile(_member(name, date, mode=here.stat().st_mode & 0o7777, size=len(content)), io.BytesIO(content))
            else:
                raise Problem("%s is neither file, folder nor symbolic link" % here)
    return out.getvalue()


class Blobs:
    def __init__(self):
        self.found = {}

    def add(self, kind, content):
        """Its descriptor."""
        name = hashlib.sha256(content).hexdigest()
        self.found["blobs/sha256/" + name] = content
        return {"mediaType": kind, "digest": "sha256:" + name, "size": len(content)}

    def add_json(self, kind, value):
        return self.add(kind, _json(value))


def _json(value):
    return json.dumps(value, indent=1, sort_keys=True).encode() + b"\n"


def _path(descriptor):
    return "blobs/" + descriptor["digest"].replace(":", "/")


def write(path, root, name, architecture, date, created, config):
    """name: NAME:TAG, as which engines load it; date: seconds, of all files; created: the same as RFC 3339; config: as in the
    image's configuration (User, Entrypoint, Labels, ...)."""
    blobs = Blobs()
    plain = layer(root, date)
    packed = blobs.add(LAYER, gzip.compress(plain, compresslevel=9, mtime=0))
    platform = {"architecture": architecture, "os": "linux"}
    settings = blobs.add_json(CONFIG, dict(platform, created=created, config=config, rootfs={
        "type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]}, history=[
            {"created": created, "created_by": "manifests/container/Containerfile"}]))
    labels = dict(config["Labels"], **{"org.opencontainers.image.created": created})
    manifest = blobs.add_json(MANIFEST, {"schemaVersion": 2, "mediaType": MANIFEST, "config": settings, "layers": [packed],
                                         "annotations": labels})
    # The names under which podman, skopeo and containerd find it in the archive.
    named = {"org.opencontainers.image.ref.name": name.rpartition(":")[2], "io.containerd.image.name": "docker.io/library/" + name}
    files = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json({"schemaVersion": 2, "mediaType": INDEX, "manifests": [dict(manifest, platform=platform, annotations=named)]}),
        "manifest.json": _json([{"Config": _path(settings), "RepoTags": [name], "Layers": [_path(packed)]}]),
        **blobs.found,
    }
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for folder in ("blobs", "blobs/sha256"):
            tar.addfile(_member(folder, date, tarfile.DIRTYPE, 0o755))
        for file, content in sorted(files.items()):
            tar.addfile(_member(file, date, size=len(content)), io.BytesIO(content))


class Archive:
    """One that write() or another tool has made, with a single image in it."""

    def __init__(self, path):
        self.tar = tarfile.open(path)
        try:
            index = self.json("index.json")
            (entry,) = index["manifests"]
            self.manifest_size = entry["size"]
            self.manifest = self.json(_path(entry))
        except (KeyError, ValueError) as error:
            raise Problem("%s is no OCI archive of one image: %s" % (path, error)) from None

    def read(self, name):
        return self.tar.extractfile(name).read()

    def json(self, name):
        return json.loads(self.read(name))

    def config(self):
        return self.json(_path(self.manifest["config"]))

    def layers(self):
        """Each as a tar, unpacked."""
        return [gzip.decompress(self.read(_path(found))) for found in self.manifest["layers"]]

    def size(self):
        """What a node fetches that has nothing of it: manifest, configuration, layers as they are compressed."""
        return self.manifest_size + self.manifest["config"]["size"] + sum(found["size"] for found in self.manifest["layers"])
