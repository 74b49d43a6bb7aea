# SPDX-License-Identifier: Apache-2.0
"""Recipes of the image and of the machines' disk, the image's place in the cache folder, and its damage.

A script replaces mmdebstrap, except in the tests marked ``virtual``.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tiny_images import cache as cache

from longfat.builds.disk import RECIPE_FOLDER, boot_sector, recipe_digest
from longfat.builds.image import ImageBuild, build_image, load_image
from longfat.system.errors import RigError


@pytest.mark.parametrize("kind", ["file removed", "file added", "folder removed"])
def test_a_change_of_the_files_is_noticed_at_use(cache: Path, kind: str) -> None:
    root = build_image().path
    if kind == "file removed":
        (root / "usr/bin/python3").unlink()
    elif kind == "file added":
        (root / "usr/bin/sitecustomize.py").write_text("")
    else:
        shutil.rmtree(root)
    with pytest.raises(RigError, match="damaged") as caught:
        build_image()
    assert caught.value.hint == f"rm -r {root.parent} && ./just build image"


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 1}', '{"format": 9}'])
def test_a_damaged_description_is_noticed_at_use(cache: Path, text: str) -> None:
    folder = build_image().path.parent
    (folder / "image.json").write_text(text)
    with pytest.raises(RigError, match=r"image\.json"):
        load_image(folder)


@pytest.fixture(scope="module")
def real_image() -> ImageBuild:
    """The image of the user's own cache folder, built on demand."""
    return build_image()


@pytest.mark.virtual
def test_the_image_has_nothing_of_the_machine_that_built_it(real_image: ImageBuild) -> None:
    etc = real_image.path / "etc"
    assert (etc / "hostname").read_text() == "longfat\n"
    assert (etc / "machine-id").read_bytes() == b""
    assert (etc / "resolv.conf").read_bytes() == b""
    assert list((etc / "apt").glob("sources.list*")) == []
    assert list((real_image.path / "var/log").iterdir()) == []


@pytest.mark.virtual
def test_bytecode_in_the_image_is_never_compared_with_its_source(real_image: ImageBuild) -> None:
    compiled = sorted(real_image.path.glob("usr/lib/python3*/**/*.pyc"))
    assert {"net.cpython-311.pyc", "subprocess.cpython-311.pyc"} <= {path.name for path in compiled}
    # PEP 552: bytes 4 to 8 are flags; 1 means "by hash", 2 would mean "check the source".
    assert {path.read_bytes()[4:8] for path in compiled} == {b"\x01\x00\x00\x00"}


@pytest.mark.oci
def test_a_second_build_gives_the_same_bytes(
    real_image: ImageBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGFAT_CACHE", str(tmp_path))
    packages = json.loads((real_image.path.parent / "image.json").read_text())["packages"]
    second = build_image()
    if json.loads((second.path.parent / "image.json").read_text())["packages"] != packages:
        pytest.skip("Debian has released newer packages since the image in the cache folder was built")
    assert second.digest == real_image.digest


def test_every_file_of_the_recipe_counts(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe"
    shutil.copytree(RECIPE_FOLDER, recipe)
    known = recipe_digest(RECIPE_FOLDER)
    assert recipe_digest(recipe) == known
    seed = recipe / "root/usr/local/sbin/seed"
    seed.chmod(0o644)
    assert recipe_digest(recipe) != known
    seed.chmod(0o755)
    (recipe / "fetched.txt").write_text("chrony # another list\n")
    assert recipe_digest(recipe) != known


def test_the_disk_begins_with_grub_and_one_partition_of_linux() -> None:
    sector = boot_sector(b"\xeb" * 512, 2048, 4096)
    assert (len(sector), sector[0], sector[0x66:0x68], sector[510:]) == (512, 0xEB, b"\x90\x90", b"\x55\xaa")
    assert (sector[446], sector[450]) == (0x80, 0x83)
    assert [int.from_bytes(sector[at : at + 4], "little") for at in (454, 458)] == [2048, 4096]
    assert sector[462:510] == bytes(48)
