# SPDX-License-Identifier: Apache-2.0
"""The archive of the container image: its formats, its bytes, and what is where. Neither pip nor Docker is called."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from longfat.builds import oci
from longfat.builds.archive import read
from longfat.builds.image import ImageBuild, load_image
from longfat.builds.layer import Layer
from longfat.builds.listing import tree_digest
from longfat.builds.oci import OciBuild, build_oci
from longfat.builds.roots import root_fault

EPOCH = 1735689600


@dataclass(frozen=True)
class Inputs:
    """What build_oci is given."""

    kernel: Path
    image: ImageBuild
    root: Path

    def build(self) -> OciBuild:
        return build_oci([self.kernel], self.image, self.root)


def made_inputs(cache: Path) -> Inputs:
    """A cache folder with a tiny image, the root composed of it, and a kernel."""
    image = cache / "images/0123/root"
    for name, content, mode in (
        ("etc/shadow", "secret", 0o600),
        ("etc/hosts", "127.0.0.1", 0o644),
        ("usr/bin/python3.11", "python", 0o755),
        ("usr/bin/su", "su", 0o4755),
        ("usr/lib/data", "data", 0o644),
    ):
        path = image / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(mode)
        os.utime(path, (EPOCH - 5, EPOCH - 5))
    (image / "root").mkdir(mode=0o700)
    for name in ("code", "tmp"):
        (image / name).mkdir()
    (image / "usr/bin/su").chmod(0o755)
    (image / "usr/bin/python3").symlink_to("python3.11")
    facts = {"format": 1, "digest": "d" * 64, "listing_sha256": "of these modes", "content_sha256": ""}
    (image.parent / "image.json").write_text(json.dumps(facts))
    root = cache / "roots/composed/root"
    shutil.copytree(image, root, symlinks=True, copy_function=os.link)
    (root / "code/run.py").write_text("run")
    (root.parent / "root.json").write_text(json.dumps({"format": 1, "code_sha256": tree_digest(root / "code")}))
    kernel = cache / "kernels/89ab/linux"
    kernel.parent.mkdir(parents=True)
    kernel.write_text("kernel")
    kernel.chmod(0o755)
    (kernel.parent / "kernel.json").write_text("{}")
    return Inputs(kernel, ImageBuild(image, "d" * 64, "", ""), root)


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inputs:
    """Inputs in a cache folder of their own; pip installs one module, and compilation does nothing."""

    def install(lock: str, root: Path, target: Path) -> None:
        (target / "rich").mkdir(parents=True)
        (target / "rich/__init__.py").write_text("rich")
        (target / "bin").mkdir()
        with (tmp_path / "installed").open("a") as log:
            log.write("once\n")

    monkeypatch.setattr(oci, "install", install)
    monkeypatch.setattr(oci, "compile_all", lambda root, folder, place: None)
    monkeypatch.setenv("LONGFAT_CACHE", str(tmp_path / "cache"))
    return made_inputs(tmp_path / "cache")


def members(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}  # type: ignore[union-attr]


def layers(archive: Path) -> list[bytes]:
    """The tar files of the layers, lowest first."""
    content = members(archive)
    return [gzip.decompress(content[name]) for name in json.loads(content["manifest.json"])[0]["Layers"]]


def entries(layer: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        return {member.name: member for member in tar}


def config_of(archive: Path) -> dict[str, Any]:
    content = members(archive)
    return dict(json.loads(content[json.loads(content["manifest.json"])[0]["Config"]]))


def test_an_archive_is_built_once_and_again_when_an_input_changes(inputs: Inputs, tmp_path: Path) -> None:
    first = inputs.build()
    assert first.tag == "longfat:0.1.0"
    assert first.path == tmp_path / "cache/oci/longfat-0.1.0.tar"
    names = sorted(path.name for path in first.path.parent.iterdir())
    assert names == ["longfat-0.1.0.tar", "longfat-0.1.0.tar.lock"]
    assert inputs.build() == first
    assert (tmp_path / "installed").read_text() == "once\n"
    inputs.kernel.write_text("another kernel")
    assert inputs.build().image_id != first.image_id


def test_a_file_that_is_no_archive_is_replaced(inputs: Inputs) -> None:
    whole = inputs.build()
    content = whole.path.read_bytes()
    for damage in (b"", b"no tar", content[:2000]):
        whole.path.write_bytes(damage)
        assert read(whole.path) is None
        assert inputs.build() == whole
    assert whole.path.read_bytes() == content


def test_the_same_inputs_in_another_place_give_the_same_bytes(
    inputs: Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = inputs.build().path.read_bytes()
    monkeypatch.setenv("LONGFAT_CACHE", str(tmp_path / "elsewhere"))
    before = os.umask(0o077)
    try:
        second = made_inputs(tmp_path / "elsewhere").build().path
    finally:
        os.umask(before)
    assert second.read_bytes() == first
    assert not [layer for layer in layers(second) if str(tmp_path).encode() in layer]


def test_the_archive_is_an_oci_layout_and_a_docker_archive_of_the_same_image(inputs: Inputs) -> None:
    content = members(inputs.build().path)
    assert json.loads(content["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    for name in content:
        if name.startswith("blobs/"):
            assert name == f"blobs/sha256/{hashlib.sha256(content[name]).hexdigest()}"
    [entry] = json.loads(content["index.json"])["manifests"]
    manifest = json.loads(content[f"blobs/{entry['digest'].replace(':', '/')}"])
    named = [manifest["config"], *manifest["layers"]]
    assert [len(content[f"blobs/{blob['digest'].replace(':', '/')}"]) for blob in named] == [b["size"] for b in named]
    [docker] = json.loads(content["manifest.json"])
    assert docker["RepoTags"] == ["longfat:0.1.0"]
    assert [docker["Config"], *docker["Layers"]] == [f"blobs/{blob['digest'].replace(':', '/')}" for blob in named]


def test_the_configuration_names_the_layers_as_they_are_unpacked(inputs: Inputs) -> None:
    archive = inputs.build().path
    assert config_of(archive)["rootfs"]["diff_ids"] == [
        f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers(archive)
    ]


def test_a_container_starts_as_a_user_with_folders_of_its_own(inputs: Inputs) -> None:
    settings = config_of(inputs.build().path)["config"]
    assert settings["User"] not in ("", "0", "root", "0:0")
    assert {"HOME=/tmp", "TMPDIR=/tmp", "LONGFAT_ROOT=/", "LONGFAT_CACHE=/opt/longfat/cache"} <= set(settings["Env"])
    assert {"PYTHONPATH=", "PYTHONNOUSERSITE=1"} <= set(settings["Env"]), "no package of the user's is used"


def test_everything_is_roots_readable_by_all_and_as_old_as_the_image(inputs: Inputs) -> None:
    for layer in layers(inputs.build().path):
        for entry in entries(layer).values():
            assert (entry.uid, entry.gid, entry.uname, entry.gname) == (0, 0, "", "")
            assert entry.mtime <= EPOCH
            assert entry.mode & 0o444 == 0o444
            assert not entry.mode & (stat.S_ISUID | stat.S_ISGID)
            assert not entry.isdir() or entry.mode & 0o111 == 0o111
            assert not entry.mode & 0o022 or entry.name in ("results", "tmp") or entry.issym()


def test_the_image_is_there_once_under_three_names(inputs: Inputs) -> None:
    userland = entries(layers(inputs.build().path)[0])
    names = ["usr/lib/data", "opt/longfat/cache/images/0123/root/usr/lib/data"]
    names.append("opt/longfat/cache/roots/composed/root/usr/lib/data")
    assert sorted(userland[name].islnk() for name in names) == [False, True, True]
    assert userland["opt/longfat/cache/roots/composed/root/code/run.py"].isreg()


def test_what_container_tools_write_to_is_no_file_of_the_cache_folder(inputs: Inputs) -> None:
    userland = entries(layers(inputs.build().path)[0])
    cached = ["opt/longfat/cache/images/0123/root/etc/hosts", "opt/longfat/cache/roots/composed/root/etc/hosts"]
    assert [userland[name].linkname for name in ("etc/hosts", *cached)] == ["", "", cached[0]]


def test_folders_of_the_archive_come_before_what_is_in_them(inputs: Inputs) -> None:
    with tarfile.open(inputs.build().path) as tar:
        assert [member.name for member in tar if member.isdir()] == tar.getnames()[:2] == ["blobs", "blobs/sha256"]


def test_what_is_unpacked_is_a_cache_folder_that_passes_its_checks(inputs: Inputs, tmp_path: Path) -> None:
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    for layer in layers(inputs.build().path):
        subprocess.run(["tar", "-xpC", unpacked, "--no-same-owner"], input=layer, check=True)
    image = load_image(unpacked / "opt/longfat/cache/images/0123")
    assert image.digest == inputs.image.digest
    assert root_fault(unpacked / "opt/longfat/cache/roots/composed", image) is None
    assert (unpacked / "opt/longfat/cache/kernels/89ab/linux").stat().st_mode & 0o777 == 0o755
    assert (unpacked / "usr/local/lib/python3.11/dist-packages/rich/__init__.py").read_text() == "rich"
    assert not (unpacked / "usr/local/lib/python3.11/dist-packages/bin").exists()
    assert (unpacked / "experiments/_smoke/study.yaml").is_file()
    assert (unpacked / "opt/longfat/src/longfat/cli.py").is_file()
    assert not list((unpacked / "opt").rglob("__pycache__"))
    for name in ("tmp", "results"):
        assert (unpacked / name).stat().st_mode & 0o7777 == 0o1777


def test_a_later_entry_of_a_layer_replaces_an_earlier_one_and_folders_come_first(tmp_path: Path) -> None:
    layer = Layer("", EPOCH)
    layer.file("a/b/c", b"first")
    layer.folder("a-b")
    layer.link("a/b/c", "../d")
    stream = io.BytesIO()
    layer.write(stream)
    found = entries(stream.getvalue())
    assert list(found) == ["a", "a/b", "a/b/c", "a-b"]
    assert found["a/b/c"].linkname == "../d"
