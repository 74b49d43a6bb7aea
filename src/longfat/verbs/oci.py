# SPDX-License-Identifier: Apache-2.0
"""The verb ``build oci``: the container image of what this machine runs; builds kernels and image first."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from longfat.backends.virtual import open_virtual
from longfat.builds.image import build_image
from longfat.builds.oci import build_oci
from longfat.catalog.kernels import STACK_KERNELS


def build(console: Console) -> Path:
    """Build the archive in the cache folder. Raises RigError."""
    backend = open_virtual(say=console.print, kernels=STACK_KERNELS)
    kernels = [kernel.path for kernel in backend.kernels.values()]
    return build_oci(kernels, build_image(), backend.root, say=console.print)
