# SPDX-License-Identifier: Apache-2.0
"""Names of nodes that no manifest states."""

from longfat.spec.network import MIDDLE

HOLDER = f"{MIDDLE}h"
"""Beginning of the name of a node that holds packets back: its two links count as one (spec/network.py)."""
