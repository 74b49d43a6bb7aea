# SPDX-License-Identifier: Apache-2.0
"""The kernels of a study's own in the cache folder: with its patches built anew, with its C files only linked anew."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from longfat.builds.kernel import FORMAT, KernelBuild, build_kernel, load_kernel, write_facts
from longfat.builds.kernel_kit import KIT, link_kernel
from longfat.builds.kernel_recipe import KERNELS_FOLDER, Recipe
from longfat.builds.kernel_targets import GUEST
from longfat.catalog.kernels import OwnKernel
from longfat.store import keep

Say = Callable[[str], None]


def build_own_kernel(
    own: OwnKernel, *, kernels_folder: Path = KERNELS_FOLDER, say: Say = lambda line: None
) -> KernelBuild:
    """The guest's kernel with what a study adds to it: from the cache folder, or made now.

    Its digest is that of the kernel without C files and of these. Raises StudyError when one of them does not compile,
    RigError as ``build_kernel``.
    """

    def build(copy: str = "") -> KernelBuild:
        patches = [piece.path for piece in own.patches]
        return build_kernel(name=own.base, patches=patches, kernels_folder=kernels_folder, copy=copy, say=say)

    base = build()
    if not own.sources:
        return base
    digest = hashlib.sha256(base.digest.encode())
    for source in own.sources:
        digest.update(f"\0{source.path.name}\0{source.sha256}".encode())
    kernels = base.path.parents[1]
    result = kernels / digest.hexdigest()[:32]
    names = ", ".join(source.name for source in own.sources)

    def make(new: Path) -> None:
        folder = base.path.parent
        if not (folder / KIT).is_file():  # a kernel of an earlier version
            say("what further algorithms are linked with is not there yet: it comes with another build of the kernel")
            folder = build("-kit").path.parent
        say(f"compiling {names} into the guest's kernel")
        work = new.parent / "kit"
        work.mkdir()
        linux = link_kernel(folder / KIT, own.sources, work, say)
        new.mkdir()
        linux.rename(new / linux.name)
        facts = json.loads((folder / "kernel.json").read_text())
        pieces = {source.path.name: source.sha256 for source in own.sources}
        write_facts(new, GUEST, {**facts, "format": FORMAT, "digest": digest.hexdigest(), "sources": pieces})

    keep(result, make, f"the kernel with {names}", "200 MB", lock=kernels / "own.lock")
    recipe = Recipe(own.base, kernels_folder)
    return load_kernel(recipe, GUEST, result, digest.hexdigest(), pinned=base.pinned)
