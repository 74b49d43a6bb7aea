# SPDX-License-Identifier: Apache-2.0
"""A study's results as data frames and figures for notebooks: ``from longfat.data import open_study``."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longfat.data.opened import OpenedStudy, open_study

__all__ = ["OpenedStudy", "open_study"]


def __getattr__(name: str) -> Any:
    """Import on first use: figures load matplotlib, which most commands do not need."""
    if name not in __all__:
        raise AttributeError(name)
    from longfat.data import opened

    return getattr(opened, name)
