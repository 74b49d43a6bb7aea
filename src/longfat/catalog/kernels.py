# SPDX-License-Identifier: Apache-2.0
"""The named kernels that a study may ask for: a folder of ``kernels/`` for each.

Which source, patches and configuration a kernel has is in its folder.
"""

from __future__ import annotations

import difflib

from longfat.errors import StudyError

DEFAULT_KERNEL = "linux-6.12"
"""The kernel of every run that names none."""

KERNELS: tuple[str, ...] = (DEFAULT_KERNEL, "linux-7.3")


def require_kernel(name: str) -> None:
    """Raise StudyError, with the names there are, unless ``name`` is one of them."""
    if name not in KERNELS:
        near = difflib.get_close_matches(name, KERNELS, n=1)
        raise StudyError(
            f"unknown kernel {name!r}; allowed: {', '.join(KERNELS)}",
            hint=f"did you mean {near[0]!r}?" if near else None,
        )
