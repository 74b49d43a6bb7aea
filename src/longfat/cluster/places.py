# SPDX-License-Identifier: Apache-2.0
"""Finds a cluster by the text that ``--on`` has."""

from __future__ import annotations

import os
import shlex

from longfat.cluster.kubernetes import Kubernetes
from longfat.cluster.manifest import read_pods
from longfat.cluster.protocol import Cluster
from longfat.cluster.slurm import Slurm
from longfat.cluster.ssh import Ssh, read_hosts
from longfat.errors import StudyError

SSH = "ssh -o BatchMode=yes"
ALLOWED = "allowed: slurm, ssh:HOST,HOST or kubernetes:image=IMAGE,claim=CLAIM"


def open_cluster(text: str) -> Cluster:
    """The cluster that a text such as ``slurm`` names. Raises StudyError on another text."""
    kind, _, rest = text.partition(":")
    match kind:
        case "slurm" if not rest:
            return Slurm()
        case "kubernetes":
            return Kubernetes(read_pods(rest))
        case "ssh" if rest:
            return Ssh(read_hosts(rest), tuple(shlex.split(os.environ.get("LONGFAT_SSH") or SSH)))
    raise StudyError(f"{text!r} is no cluster; {ALLOWED}", where="--on")
