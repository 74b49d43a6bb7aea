# SPDX-License-Identifier: Apache-2.0
"""The whole testbed as one container image, in an archive that Docker, Podman and Apptainer load without a registry.

Owns the layout of a container and ``<cache>/oci/longfat-VERSION.tar``. Needs neither Docker nor root. Must not decide
what a guest runs: the container has the kernel, the image and the composed root that this machine uses.
"""

from __future__ import annotations

import hashlib
import shutil
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longfat.builds.archive import pack, read, write_layer
from longfat.builds.image import RECIPE_FOLDER, ImageBuild, facts_of_readable_copy
from longfat.builds.image_recipe import read_recipe
from longfat.builds.kernel_kit import KIT
from longfat.builds.layer import Layer
from longfat.builds.python_packages import compile_all, install, is_wanted
from longfat.cache import cache_folder
from longfat.store import keep

CHECKOUT = RECIPE_FOLDER.parent
# The parts of it in a container: the files that run, and those they were made from.
PROJECT = (
    *("LICENSE", "LICENSES", "analysis", "experiments", "images", "kernels"),
    *("pyproject.toml", "requirements.lock", "src"),
)
INPUTS = "longfat.inputs"  # label: SHA-256 of an archive's inputs
HOME = "opt/longfat"
CACHE = f"{HOME}/cache"
USER = "1000:1000"  # the first user of most machines: the container can write to a results folder of that user
TOOLS_OWN = ("etc/hosts", "etc/resolv.conf")  # files that container tools write to
ANYBODY = 0o1777  # a folder for all users, like /tmp


@dataclass(frozen=True)
class OciBuild:
    """A usable archive. ``image_id`` is Docker's id of the image, the same wherever the inputs are the same."""

    path: Path
    image_id: str
    tag: str


def build_oci(
    kernels: Sequence[Path], image: ImageBuild, root: Path, *, say: Callable[[str], None] = lambda line: None
) -> OciBuild:
    """Build the archive from parts of the cache folder: the kernels, the image, and the root composed of it.

    Raises RigError when the Python packages cannot be installed or the archive cannot be written.
    """
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lock = (CHECKOUT / "requirements.lock").read_text(encoding="utf-8")
    inputs = _inputs(kernels, image, root, lock)
    path = cache_folder() / "oci" / f"longfat-{project['version']}.tar"
    labels = {INPUTS: inputs, "org.opencontainers.image.version": str(project["version"])}

    def right(archive: Path) -> bool:
        known = read(archive)
        return known is not None and known.labels.get(INPUTS) == inputs

    def make(new: Path) -> None:
        say("building the container image (about two minutes)")
        _write(new.parent, kernels, image, root, lock, labels, f"longfat:{project['version']}")
        (new.parent / "archive.tar").rename(new)

    keep(path, make, "the container image", "1 GB", right=right)
    built = read(path)
    assert built is not None
    return OciBuild(path, built.image_id, built.tag)


def _inputs(kernels: Sequence[Path], image: ImageBuild, root: Path, lock: str) -> str:
    """SHA-256 over all that goes into the archive."""
    digest = hashlib.sha256(f"{image.digest} {root.parent.name}\n{lock}".encode())
    for path in [*kernels, *_project_files()]:
        digest.update(f"{path.name if path in kernels else path.relative_to(CHECKOUT)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _project_files() -> Iterator[Path]:
    for name in PROJECT:
        top = CHECKOUT / name
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            if path.is_file() and all(map(_is_source, path.relative_to(CHECKOUT).parts)):
                yield path


def _is_source(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name != "__pycache__" and not name.startswith(".")


def _write(
    scratch: Path, kernels: Sequence[Path], image: ImageBuild, root: Path, lock: str, labels: dict[str, str], tag: str
) -> None:
    """Make the layers and pack them into ``archive.tar`` in ``scratch``."""
    epoch = read_recipe(RECIPE_FOLDER).source_date_epoch
    python = (image.path / "usr/bin/python3").readlink().name
    packages, source = scratch / "packages", scratch / "src"
    install(lock, image.path, packages)
    place = f"usr/local/lib/{python}/dist-packages"  # where Debian's Python looks
    compile_all(image.path, packages, f"/{place}")
    shutil.copytree(CHECKOUT / "src", source, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    compile_all(image.path, source, f"/{HOME}/src")

    dependencies = Layer("Python packages of requirements.lock", epoch)
    dependencies.tree(place, packages, wanted=is_wanted)
    layers = [_userland(image, root, epoch), dependencies, _testbed(kernels, source, place, epoch)]
    blobs = scratch / "blobs"
    blobs.mkdir()
    pack(scratch / "archive.tar", [write_layer(layer, blobs) for layer in layers], tag, epoch, _settings(labels))


def _userland(image: ImageBuild, root: Path, epoch: int) -> Layer:
    """The image as the container's own files and, by hard links, as the cache folder has it: three names, one file.

    What container tools write to is none of them: Apptainer empties it, by whatever name, when it makes its image.
    Set-id bits are not there, nor needed: a container's user gains nothing.
    """
    layer = Layer("the image, which is also the guests' root", epoch)
    layer.tree("", image.path, own=True)
    for path in TOOLS_OWN:
        if (image.path / path).is_file():
            layer.file(path, (image.path / path).read_bytes())
    kept = f"{CACHE}/images/{image.path.parent.name}"
    layer.tree(f"{kept}/root", image.path, own=True)
    layer.file(f"{kept}/image.json", facts_of_readable_copy(image.path.parent))
    composed = f"{CACHE}/roots/{root.parent.name}"
    layer.tree(f"{composed}/root", root, own=True)
    layer.tree(f"{composed}/root/code", root / "code")
    layer.tree(f"{composed}/root.json", root.parent / "root.json")
    return layer


def _testbed(kernels: Sequence[Path], source: Path, place: str, epoch: int) -> Layer:
    """The kernels, the studies and the package; folders that any user can write to."""
    layer = Layer("kernels, package and studies", epoch)
    for name in PROJECT:
        layer.tree(f"{HOME}/{name}", CHECKOUT / name, wanted=_is_source)
    layer.tree(f"{HOME}/src", source)
    for kernel in kernels:  # without a compiler in the container nothing can be linked with them
        layer.tree(f"{CACHE}/kernels/{kernel.parent.name}", kernel.parent, wanted=lambda name: name != KIT)
    layer.file(f"{place}/longfat.pth", f"/{HOME}/src\n".encode())
    for name in ("analysis", "experiments"):
        layer.link(name, f"{HOME}/{name}")
    for folder in ("results", "tmp"):
        layer.folder(folder, ANYBODY)
    return layer


def _settings(labels: dict[str, str]) -> dict[str, Any]:
    """How a container starts. Nothing in its cache folder is written to: guests meet the package in /tmp.

    Apptainer passes the machine's environment and home on, but for the names that are set here: no package of the
    user's, in ``~/.local`` or on ``PYTHONPATH``, may take the place of the image's.
    """
    environment = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "LONGFAT_CACHE": f"/{CACHE}",
        "LONGFAT_ROOT": "/",
        "PYTHONPATH": "",
        "PYTHONNOUSERSITE": "1",
    }
    return {
        "User": USER,
        "Env": [f"{name}={value}" for name, value in environment.items()],
        "Entrypoint": ["/usr/bin/python3", "-P", "-m", "longfat"],
        "Cmd": ["--help"],
        "WorkingDir": "/",
        "Labels": labels,
    }
