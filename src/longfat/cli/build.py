# SPDX-License-Identifier: Apache-2.0
"""``build``: kernel, image, container image and disk in the cache folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from longfat.backends.virtual import open_virtual
from longfat.builds.archive import write_archive
from longfat.builds.disk import build_disk
from longfat.builds.image import RECIPE_FOLDER, build_image, read_recipe
from longfat.builds.kernel import build_kernel
from longfat.builds.kernel_recipe import Recipe
from longfat.builds.kernel_source import find_source
from longfat.builds.kernel_targets import TARGETS
from longfat.builds.oci import build_oci, sign_file
from longfat.cli.console import say_place
from longfat.study.catalog.kernels import DEFAULT_KERNEL, KERNELS, STACK_KERNELS
from longfat.study.schema.names import require
from longfat.system.cache import cache_folder

HELP = "Build the kernel, the image, a container image or a disk into the cache folder, or an archive of all inputs."


def kernel(
    console: Console,
    target: Annotated[
        Literal["um", "x86-64"], typer.Option(help="kernel of the guest, or Debian package for x86-64 machines")
    ] = "um",
    name: Annotated[str, typer.Option("--kernel", help="name of a folder in kernels/")] = DEFAULT_KERNEL,
) -> None:
    """Build a kernel."""
    require("kernel", name, KERNELS)
    say_place(console, "kernel", build_kernel(TARGETS[target], name, say=console.print).path)


def image(console: Console) -> None:
    """Build the userland image."""
    say_place(console, "image", build_image(say=console.print).path)


def disk(console: Console) -> None:
    """Build the disk of virtual machines; needs root."""
    say_place(console, "disk", build_disk(say=console.print))


def oci(
    console: Console,
    sign: Annotated[Path | None, typer.Option(help="SSH key that signs the archive, in ARCHIVE.sig")] = None,
) -> None:
    """Build the whole testbed as a container image, with kernel and image."""
    archive = build_container(console)
    say_place(console, "container image", archive)
    if sign:
        say_place(console, "signature", sign_file(archive, sign))


def archive(
    console: Console, folder: Annotated[Path, typer.Argument(help="new or empty folder, which needs 1 GB of disk")]
) -> None:
    """Collect all inputs in a folder, for a machine without a network: LONGFAT_ARCHIVE=FOLDER ./just COMMAND."""
    kernels = [build_kernel(name=name, say=console.print).path.parent for name in STACK_KERNELS]
    recipe, sources = read_recipe(RECIPE_FOLDER), cache_folder() / "kernels"
    tarballs = [find_source(Recipe(name).settings(), sources, console.print).path for name in STACK_KERNELS]
    write_archive(folder, kernels, tarballs, build_image(say=console.print).path.parent, recipe.suite, console.print)
    say_place(console, "archive", folder)


def all_(console: Console) -> None:
    """Build the kernel and the image."""
    kernel(console)
    image(console)


def build_container(console: Console) -> Path:
    """Build the archive of the container image. Raises RigError."""
    backend = open_virtual(say=console.print, kernels=STACK_KERNELS)
    kernels = [kernel.path for kernel in backend.kernels.values()]
    return build_oci(kernels, build_image(), backend.root, say=console.print)


COMMANDS = (kernel, image, disk, oci, archive, all_)
