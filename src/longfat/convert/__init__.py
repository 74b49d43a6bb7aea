# SPDX-License-Identifier: Apache-2.0
"""Converts claims and figures of format 1 to format 2, looked up in the study that is converted already."""

from __future__ import annotations

from longfat.convert.claims import converted_claims
from longfat.convert.figures import converted_figures

__all__ = ["converted_claims", "converted_figures"]
