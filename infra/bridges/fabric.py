#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts a slice of FABRIC into a lab of existing machines: fabric.py SLICE >lab.yaml

Runs where fablib is configured, such as in FABRIC's JupyterHub. `lab provision` refuses machines whose management
address is IPv6. Never met: written by fablib's documentation, no slice was available.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from lab_file import Machine, lab_file


def machines(nodes: list[Any]) -> Iterator[Machine]:
    """Yield the machines of a slice's nodes (``fabrictestbed_extensions.fablib.node.Node``)."""
    for node in nodes:
        cards = {
            network.get_name(): card.get_mac().lower()
            for card in node.get_interfaces()
            if (network := card.get_network()) is not None
        }
        yield Machine(node.get_name(), str(node.get_management_ip()), node.get_username(), cards=cards)


def main(arguments: list[str]) -> int:
    """Execute the command line and return the exit status."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        from fabrictestbed_extensions.fablib.fablib import FablibManager

        sys.stdout.write(lab_file(machines(FablibManager().get_slice(name=arguments[1]).get_nodes()), "fabric"))
    except (ValueError, ImportError) as error:
        print(f"fabric: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
