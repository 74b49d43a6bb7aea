# SPDX-License-Identifier: Apache-2.0
"""Recipe of the image, its place in the cache folder, and its damage.

A script replaces mmdebstrap, except in the tests marked ``virtual``.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tiny_images import empty_cache

from longfat.builds import image
from longfat.builds.image import (
    RECIPE_FILES,
    RECIPE_FOLDER,
    ImageBuild,
    build_image,
    load_image,
    mmdebstrap_argv,
    read_recipe,
)
from longfat.system.errors import RigError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder and a stub of mmdebstrap."""
    return empty_cache(tmp_path, monkeypatch)


def copied_recipe(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECIPE_FOLDER, tmp_path / "images"))


@pytest.mark.parametrize("name", RECIPE_FILES)
def test_a_change_of_any_recipe_file_changes_the_recipe_digest(tmp_path: Path, name: str) -> None:
    folder = copied_recipe(tmp_path)
    before = read_recipe(folder).digest
    with (folder / name).open("a") as file:
        file.write("# another line\n")
    assert read_recipe(folder).digest != before


def test_a_change_of_the_readme_leaves_the_recipe_digest_alone(tmp_path: Path) -> None:
    folder = copied_recipe(tmp_path)
    (folder / "README.md").write_text("other words")
    assert read_recipe(folder).digest == read_recipe(RECIPE_FOLDER).digest


def test_a_missing_recipe_file_is_named(tmp_path: Path) -> None:
    folder = copied_recipe(tmp_path)
    (folder / "packages.txt").unlink()
    with pytest.raises(RigError, match=r"packages\.txt"):
        read_recipe(folder)


def test_a_missing_key_of_the_recipe_is_named(tmp_path: Path) -> None:
    folder = copied_recipe(tmp_path)
    (folder / "recipe.toml").write_text('suite = "bookworm"\n')
    with pytest.raises(RigError, match=r"recipe\.toml: the key 'variant' is missing"):
        read_recipe(folder)


def test_a_recipe_that_is_not_toml_is_an_error_with_its_line(tmp_path: Path) -> None:
    folder = copied_recipe(tmp_path)
    (folder / "recipe.toml").write_text("suite: bookworm\n")
    with pytest.raises(RigError, match=r"recipe\.toml: not TOML: .*line 1"):
        read_recipe(folder)


def test_the_command_names_every_package_and_leaves_comments_out() -> None:
    recipe = read_recipe(RECIPE_FOLDER)
    argv = mmdebstrap_argv(recipe, mode="unshare", sources=["deb a b main"], target=Path("/x/image.tar"))
    assert argv[:3] == ["mmdebstrap", "--mode=unshare", "--variant=essential"]
    assert argv[-3:] == ["bookworm", "/x/image.tar", "deb a b main"]
    packages = "ethtool,iperf,iproute2,iputils-ping,mininet,mount,nginx,"
    packages += "python3,python3-docker,python3-pycurl,tcpdump,tcptrace"
    assert f"--include={packages}" in argv
    assert "--dpkgopt=path-exclude=/usr/lib/*/gconv/*" in argv


def test_an_image_is_built_once_and_then_found(cache: Path, tmp_path: Path) -> None:
    said: list[str] = []
    first = build_image(say=said.append)
    second = build_image(say=said.append)
    assert first == second
    assert len(said) == 1
    arguments, epoch = (tmp_path / "log").read_text().rsplit("\n", 2)[:2]
    assert "--mode=root" in arguments
    assert epoch == str(read_recipe(RECIPE_FOLDER).source_date_epoch)
    assert first.path.parent.parent == cache / "images"


def test_an_image_is_unpacked_without_devices_and_lists_its_packages(cache: Path) -> None:
    root = build_image().path
    assert (root / "bin/python3").read_text() == "python"
    assert list((root / "dev").iterdir()) == []
    facts = json.loads((root.parent / "image.json").read_text())
    assert facts["packages"] == {"iperf": "2.1.8", "mount": "2.38"}


def test_another_recipe_is_another_image(cache: Path, tmp_path: Path) -> None:
    folder = copied_recipe(tmp_path)
    first = build_image(recipe_folder=folder)
    (folder / "packages.txt").write_text("iperf\n")
    assert build_image(recipe_folder=folder).path != first.path


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "image.json cannot be read"),
        ("[]", "image.json cannot be read"),
        ('{"format": 1}', "image.json cannot be read .KeyError..digest"),
        ('{"format": 9}', "image.json cannot be read .*format 9 is not 1"),
    ],
)
def test_a_damaged_description_is_noticed_at_use(cache: Path, text: str, message: str) -> None:
    folder = build_image().path.parent
    (folder / "image.json").write_text(text)
    with pytest.raises(RigError, match=message):
        load_image(folder)


def test_what_a_killed_build_left_is_removed_by_the_next(cache: Path) -> None:
    leftover = cache / "images" / f".partial-{read_recipe(RECIPE_FOLDER).digest}-killed"
    leftover.mkdir(parents=True)
    folder = build_image().path.parent
    assert not leftover.exists()
    assert sorted(path.name for path in cache.joinpath("images").iterdir()) == [
        folder.name,
        f"{folder.name}.lock",
    ]


def test_a_failed_build_tells_the_end_of_its_output_and_leaves_no_image(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "programs/mmdebstrap").write_text("#!/bin/sh\necho E: no such mirror >&2\nexit 25\n")
    with pytest.raises(RigError, match="exit status 25:\nE: no such mirror"):
        build_image()
    assert [path.suffix for path in cache.joinpath("images").iterdir()] == [".lock"]


def test_a_missing_mmdebstrap_is_named(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(RigError, match="mmdebstrap"):
        build_image()


def test_a_cache_folder_that_cannot_be_made_is_named(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LONGFAT_CACHE", str(tmp_path / "file/cache"))
    with pytest.raises(RigError, match="the image cannot be written: Not a directory"):
        build_image()


def test_a_normal_user_learns_what_a_namespace_needs(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image.os, "geteuid", lambda: 987_654)
    (tmp_path / "programs/mmdebstrap").write_text("#!/bin/sh\ntest $2 = --mode=root\n")
    with pytest.raises(RigError) as caught:
        build_image()
    assert all(word in str(caught.value.hint) for word in ("uidmap", "987654", "/etc/subuid", "/etc/subgid"))


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
@pytest.mark.parametrize("name", ["task", "code", "proc", "sys", "dev", "tmp", "run"])
def test_the_image_has_empty_mount_points(real_image: ImageBuild, name: str) -> None:
    assert list((real_image.path / name).iterdir()) == []


@pytest.mark.virtual
def test_every_program_of_a_run_is_in_the_image(real_image: ImageBuild) -> None:
    programs = [
        "bin/iperf",
        "bin/ping",
        "sbin/tc",
        "bin/ss",
        "sbin/ethtool",
        "bin/tcpdump",
        "bin/tcptrace",
        "bin/mnexec",
    ]
    assert [name for name in programs if not (real_image.path / "usr" / name).exists()] == []


@pytest.mark.virtual
def test_bytecode_in_the_image_is_never_compared_with_its_source(real_image: ImageBuild) -> None:
    compiled = sorted(real_image.path.glob("usr/lib/python3*/**/*.pyc"))
    assert {"net.cpython-311.pyc", "subprocess.cpython-311.pyc"} <= {path.name for path in compiled}
    # PEP 552: bytes 4 to 8 are flags; 1 means "by hash", 2 would mean "check the source".
    assert {path.read_bytes()[4:8] for path in compiled} == {b"\x01\x00\x00\x00"}


@pytest.mark.virtual
@pytest.mark.slow
def test_a_second_build_gives_the_same_bytes(
    real_image: ImageBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGFAT_CACHE", str(tmp_path))
    packages = json.loads((real_image.path.parent / "image.json").read_text())["packages"]
    second = build_image()
    if json.loads((second.path.parent / "image.json").read_text())["packages"] != packages:
        pytest.skip("Debian has released newer packages since the image in the cache folder was built")
    assert second.digest == real_image.digest
