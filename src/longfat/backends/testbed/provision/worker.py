# SPDX-License-Identifier: Apache-2.0
"""The archive that turns a machine into a worker: code, and kernels and image of the cache folder. Contacts no host."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from longfat.backends.registry import DEFAULT_BACKEND, open_backend
from longfat.system.cache import cache_folder
from longfat.system.files import file_sha256

ROOT = Path(__file__).resolve().parents[5]
CODE = ("src", "kernels", "images", "pyproject.toml", "requirements.lock", "requirements-cluster.lock", "LICENSE")
KERNEL_FILES = ("kernel.json", "linux")


def pack_worker(target: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Write the archive, with paths relative to the worker user's home; return the variables of the role ``worker``.

    A missing kernel or image is built first. Raises RigError if a build fails.
    """
    pins = open_backend(DEFAULT_BACKEND, {}, say=say).pins()
    say(f"packing code, kernels and image for the workers into {target}")
    cache = cache_folder()
    with (
        target.open("wb") as file,
        gzip.GzipFile("", "wb", compresslevel=1, fileobj=file, mtime=0) as packed,  # equal content gives equal bytes
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name in CODE:
            archive.add(ROOT / name, f"longfat/{name}", filter=_without_bytecode)
        for kernel in sorted(cache.glob("kernels/[!.]*/linux")):
            for name in KERNEL_FILES:
                path = kernel.with_name(name)
                archive.add(path, f".cache/longfat/{path.relative_to(cache)}")
        for image in sorted(cache.glob("images/[!.]*/image.json")):
            archive.add(image.parent, f".cache/longfat/{image.parent.relative_to(cache)}")
    return {"worker_archive": str(target), "worker_sha256": file_sha256(target), "worker_pins": pins}


def _without_bytecode(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if member.name.endswith("__pycache__") else member
