#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts the manifest of a CloudLab experiment into a lab of existing machines: cloudlab.py MANIFEST >lab.yaml

MANIFEST is the XML that the portal shows under "Manifest" (GENI RSpec 3). cloudlab_profile.py asks for such machines.
Never met: written by the format's schema, no experiment was available.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from lab_file import Machine, lab_file

RSPEC = "{http://www.geni.net/resources/rspec/3}"
LARGEST_BYTES = 16 << 20


def machines(text: str) -> Iterator[Machine]:
    """Yield the machines of a manifest. Raises ValueError if it is no manifest, or a machine has no login yet."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("the manifest declares entities, which no manifest needs")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"not XML: {error}") from error
    if root.tag != f"{RSPEC}rspec" or root.get("type") != "manifest":
        raise ValueError("not a manifest in the form of GENI RSpec 3")
    links = {
        end.get("client_id", ""): link.get("client_id", "")
        for link in root.iter(f"{RSPEC}link")
        for end in link.iter(f"{RSPEC}interface_ref")
    }
    for node in root.iter(f"{RSPEC}node"):
        name, login = node.get("client_id", ""), node.find(f"{RSPEC}services/{RSPEC}login")
        if login is None:
            raise ValueError(f"{name} has no login: the experiment is not ready")
        cards = {
            links[end]: ":".join(mac[place : place + 2] for place in range(0, 12, 2)).lower()
            for card in node.iter(f"{RSPEC}interface")
            if (end := card.get("client_id", "")) in links and (mac := card.get("mac_address", "").replace(":", ""))
        }
        port = int(login.get("port", "22"))
        yield Machine(name, login.get("hostname", ""), login.get("username", ""), port, cards)


def main(arguments: list[str]) -> int:
    """Execute the command line and return the exit status."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with Path(arguments[1]).open(encoding="utf-8") as file:
            sys.stdout.write(lab_file(machines(file.read(LARGEST_BYTES)), "cloudlab"))
    except (OSError, ValueError) as error:
        print(f"cloudlab: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
