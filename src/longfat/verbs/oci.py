# SPDX-License-Identifier: Apache-2.0
"""The verb ``build oci``: the container image of what this machine runs, kernel and image built first if need be."""

from __future__ import annotations

from rich.console import Console

from longfat.backends.virtual import open_virtual
from longfat.builds.image import build_image
from longfat.builds.oci import OciBuild, build_oci
from longfat.catalog.kernels import STACK_KERNELS


def build(console: Console) -> OciBuild:
    """The archive in the cache folder, built now unless it is there. Raises RigError."""
    backend = open_virtual(say=console.print, kernels=STACK_KERNELS)
    kernels = [kernel.path for kernel in backend.kernels.values()]
    return build_oci(kernels, build_image(), backend.root, say=console.print)
