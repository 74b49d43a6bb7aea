# SPDX-License-Identifier: Apache-2.0
"""The name of the machine that a run is executed on. Every worker imports this: it must not import more."""

from __future__ import annotations

import os

NAMES = ("SLURMD_NODENAME", "NODE_NAME")  # Slurm sets the first, our manifest of a Job the second


def node_name() -> str:
    """This machine's name in its cluster, else its host name."""
    return next((os.environ[name] for name in NAMES if name in os.environ), os.uname().nodename)
