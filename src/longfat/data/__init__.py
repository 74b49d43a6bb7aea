# SPDX-License-Identifier: Apache-2.0
"""A study's results as data frames and figures for notebooks: ``from longfat.data import open_study``."""

from longfat.data.opened import OpenedStudy, open_study

__all__ = ["OpenedStudy", "open_study"]
