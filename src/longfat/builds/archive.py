# SPDX-License-Identifier: Apache-2.0
"""The archive of a container image: an OCI image layout that is also a Docker archive, in one tar file.

Owns both formats. Must not know the purpose of an image. Specifications: OCI image-spec 1.0, image-layout.md,
config.md, manifest.md, layer.md; Docker image specification 1.2, whose ``manifest.json`` may name blobs of the layout.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from longfat.builds.layer import Layer

LEVEL = 6  # zlib's default
PLATFORM = {"architecture": "amd64", "os": "linux"}
DOCKER_MANIFEST = "manifest.json"
_MEDIA = "application/vnd.oci.image"
_BLOBS = "blobs/sha256"


@dataclass(frozen=True)
class Blob:
    """A layer as it is stored: compressed, with the SHA-256 (hex) of its tar file before and of the blob after."""

    path: Path
    comment: str
    tar_sha256: str
    sha256: str


@dataclass(frozen=True)
class Contents:
    """Of an archive: the digest of its configuration, which is Docker's name of the image; its tag; its labels."""

    image_id: str
    tag: str
    labels: dict[str, str]


class _Hashed(io.BufferedIOBase):
    """Passes written bytes on to another stream and hashes them."""

    def __init__(self, target: io.BufferedIOBase) -> None:
        self._target = target
        self.sha256 = hashlib.sha256()

    def write(self, data: Any, /) -> int:
        self.sha256.update(data)
        return self._target.write(data)


def write_layer(layer: Layer, folder: Path) -> Blob:
    """Write ``layer`` into ``folder``, compressed, under the name of its digest."""
    partial = folder / "partial"
    with partial.open("wb") as file:
        stored = _Hashed(file)
        with gzip.GzipFile("", "wb", LEVEL, stored, mtime=0) as compressed:  # neither name nor time in its header
            plain = _Hashed(compressed)
            layer.write(plain)
    sha256 = stored.sha256.hexdigest()
    return Blob(partial.rename(folder / sha256), layer.comment, plain.sha256.hexdigest(), sha256)


def pack(archive: Path, layers: Sequence[Blob], tag: str, epoch: int, settings: dict[str, Any]) -> None:
    """Write the image of these layers, called ``tag``, to the tar file ``archive``.

    ``epoch`` is its date in seconds, ``settings`` the member ``config`` of its configuration.
    """
    config = _json(_config(layers, epoch, settings))
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{_MEDIA}.manifest.v1+json",
            "config": _descriptor("config.v1+json", config),
            "layers": [
                {
                    "mediaType": f"{_MEDIA}.layer.v1.tar+gzip",
                    "digest": f"sha256:{layer.sha256}",
                    "size": layer.path.stat().st_size,
                }
                for layer in layers
            ],
        }
    )
    annotations = {
        "io.containerd.image.name": f"docker.io/library/{tag}",
        "org.opencontainers.image.ref.name": tag.rpartition(":")[2],
    }
    index = {
        "schemaVersion": 2,
        "mediaType": f"{_MEDIA}.index.v1+json",
        "manifests": [{**_descriptor("manifest.v1+json", manifest), "annotations": annotations, "platform": PLATFORM}],
    }
    for_docker = {"Config": _blob(config), "RepoTags": [tag], "Layers": [f"{_BLOBS}/{blob.sha256}" for blob in layers]}
    members: dict[str, bytes | Path] = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json(index),
        DOCKER_MANIFEST: _json([for_docker]),
        _blob(config): config,
        _blob(manifest): manifest,
        **{f"{_BLOBS}/{layer.sha256}": layer.path for layer in layers},
    }
    with tarfile.open(archive, "w", format=tarfile.USTAR_FORMAT) as tar:
        for folder in ("blobs", _BLOBS):  # Apptainer makes no folder that the archive does not name
            _add_folder(tar, folder, epoch)
        for name, content in members.items():
            _add(tar, name, content, epoch)


def read(archive: Path) -> Contents | None:
    """The archive's own description; None unless ``pack`` has written the archive."""
    try:
        with tarfile.open(archive) as tar:
            [manifest] = json.loads(_member(tar, DOCKER_MANIFEST))
            config = json.loads(_member(tar, manifest["Config"]))
        image_id = str(manifest["Config"]).replace(f"{_BLOBS}/", "sha256:")
        return Contents(image_id, str(manifest["RepoTags"][0]), dict(config["config"]["Labels"]))
    except (OSError, tarfile.TarError, ValueError, KeyError, TypeError, IndexError):
        return None


def _config(layers: Sequence[Blob], epoch: int, settings: dict[str, Any]) -> dict[str, Any]:
    created = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        **PLATFORM,
        "created": created,
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.tar_sha256}" for layer in layers]},
        "history": [{"created": created, "created_by": "longfat", "comment": layer.comment} for layer in layers],
    }


def _descriptor(kind: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": f"{_MEDIA}.{kind}", "digest": f"sha256:{_sha256(content)}", "size": len(content)}


def _blob(content: bytes) -> str:
    return f"{_BLOBS}/{_sha256(content)}"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _add(tar: tarfile.TarFile, name: str, content: bytes | Path, epoch: int) -> None:
    member = tarfile.TarInfo(name)
    member.mode, member.mtime = 0o644, epoch
    with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as stream:
        member.size = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        tar.addfile(member, stream)


def _add_folder(tar: tarfile.TarFile, name: str, epoch: int) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.mtime = tarfile.DIRTYPE, 0o755, epoch
    tar.addfile(member)


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    stream = tar.extractfile(name)
    if stream is None:
        raise KeyError(name)
    return stream.read()
