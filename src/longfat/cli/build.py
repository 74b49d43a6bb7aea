# SPDX-License-Identifier: Apache-2.0
"""``build``: kernel, image, container image and disk in the cache folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from longfat.backends.virtual import open_virtual
from longfat.builds.disk import build_disk
from longfat.builds.image import build_image
from longfat.builds.kernel import build_kernel
from longfat.builds.kernel_targets import TARGETS
from longfat.builds.oci import build_oci
from longfat.cli.console import say_place
from longfat.study.catalog.kernels import DEFAULT_KERNEL, STACK_KERNELS, require_kernel

HELP = "Build the kernel, the image, a container image or a disk into the cache folder, unless it is there."


def kernel(
    console: Console,
    target: Annotated[
        Literal["um", "x86-64"], typer.Option(help="kernel of the guest, or Debian package for x86-64 machines")
    ] = "um",
    name: Annotated[str, typer.Option("--kernel", help="name of a folder in kernels/")] = DEFAULT_KERNEL,
) -> None:
    """Build a kernel."""
    require_kernel(name)
    say_place(console, "kernel", build_kernel(TARGETS[target], name, say=console.print).path)


def image(console: Console) -> None:
    """Build the userland image."""
    say_place(console, "image", build_image(say=console.print).path)


def disk(console: Console) -> None:
    """Build the disk of virtual machines; needs root."""
    say_place(console, "disk", build_disk(say=console.print))


def oci(console: Console) -> None:
    """Build the whole testbed as a container image, with kernel and image."""
    say_place(console, "container image", build_container(console))


def all_(console: Console) -> None:
    """Build the kernel and the image."""
    kernel(console)
    image(console)


def build_container(console: Console) -> Path:
    """Build the archive of the container image. Raises RigError."""
    backend = open_virtual(say=console.print, kernels=STACK_KERNELS)
    kernels = [kernel.path for kernel in backend.kernels.values()]
    return build_oci(kernels, build_image(), backend.root, say=console.print)


COMMANDS = (kernel, image, disk, oci, all_)
