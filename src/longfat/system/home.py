# SPDX-License-Identifier: Apache-2.0
"""The project's folder with ``kernels/``, ``images/`` and ``experiments/``: the checkout, or its copy in a wheel."""

from __future__ import annotations

from longfat.system.identity import PACKAGE

SHIPPED = PACKAGE / "checkout"  # exists in an installed package only; pyproject.toml lists its content
HOME = SHIPPED if SHIPPED.is_dir() else PACKAGE.parents[1]
