# SPDX-License-Identifier: Apache-2.0
"""The study manifest: its models, its loader and its checks. Pure: nothing here looks at the machine."""

from longfat.manifest.load import load_study
from longfat.manifest.schema import json_schema
from longfat.manifest.study import Point, Study, SweptExperiment

__all__ = ["Point", "Study", "SweptExperiment", "json_schema", "load_study"]
