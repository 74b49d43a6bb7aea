# SPDX-License-Identifier: Apache-2.0
"""Finds a cluster by the text that ``--on`` has."""

from __future__ import annotations

from longfat.cluster.protocol import Cluster
from longfat.cluster.slurm import Slurm
from longfat.errors import StudyError

ALLOWED = "allowed: slurm"


def open_cluster(text: str) -> Cluster:
    """The cluster that a text such as ``slurm`` names. Raises StudyError on another text."""
    if text == "slurm":
        return Slurm()
    raise StudyError(f"{text!r} is no cluster; {ALLOWED}", where="--on")
