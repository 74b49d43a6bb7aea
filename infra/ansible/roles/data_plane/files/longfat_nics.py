#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Brings the network cards of the data plane into the state that /etc/longfat/nics.d states: longfat-nics VERB

apply changes what differs and prints a line for each change; check prints what differs and changes nothing; find
prints the name of each link's card. Exit status 1 when something differs afterwards, 2 when it cannot be stated.
A card is found by its MAC address or its place on the PCI bus: its name may be another one under another kernel. A
tunnel is made, with the stated MAC address: a run's namespace takes it along when it ends.
Each file is a JSON object of links; several files may state parts of a link, and none may contradict another.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

STATES = Path("/etc/longfat/nics.d")
CARDS = Path("/sys/class/net")
PATIENCE_S = 30  # a module finds its card, and the kernel ends a run's namespace, some seconds later

# What ethtool accepts is shorter than what it prints; names such as tx-tcp-segmentation are both.
PRINTED = {
    "gro": "generic-receive-offload",
    "gso": "generic-segmentation-offload",
    "lro": "large-receive-offload",
    "rx": "rx-checksumming",
    "sg": "scatter-gather",
    "tso": "tcp-segmentation-offload",
    "tx": "tx-checksumming",
}

Difference = tuple[str, str, str, tuple[tuple[str, ...], ...]]
"""What it is about, found, wanted, and the commands that mend it."""


class NicError(Exception):
    """The wanted state cannot be read or reached."""


def merged(states: Iterable[Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """The links of several files as one. Raises NicError where two state the same thing differently."""
    links: dict[str, dict[str, Any]] = {}
    for state in states:
        for link, wanted in state.items():
            for key, value in wanted.items():
                if links.setdefault(link, {}).setdefault(key, value) != value:
                    raise NicError(f"link {link}: {key} is both {links[link][key]!r} and {value!r}")
    return links


def matching(wanted: Mapping[str, Any], cards: Iterable[Mapping[str, str]]) -> list[str]:
    """Names of the cards with the wanted MAC address and place on the PCI bus, as far as each is stated."""
    stated = {key: wanted[key] for key in ("mac", "pci") if wanted.get(key)}
    return [card["name"] for card in cards if stated and all(card[key] == stated[key] for key in stated)]


def features(listing: str) -> dict[str, tuple[bool, bool]]:
    """What ``ethtool --show-features`` prints: for each feature whether it is on and whether it is fixed."""
    pattern = r"^\s*(?P<name>[\w-]+): (?P<state>on|off)(?P<fixed> \[fixed\])?"
    rows = re.finditer(pattern, listing, re.MULTILINE)
    return {row["name"]: (row["state"] == "on", row["fixed"] is not None) for row in rows}


def rings(listing: str) -> tuple[dict[str, int], dict[str, int]]:
    """What ``ethtool --show-ring`` prints: the largest sizes and the present ones, of rx and tx."""
    largest, _, present = listing.partition("Current hardware settings")

    def sizes(text: str) -> dict[str, int]:
        return {name.lower(): int(size) for name, size in re.findall(r"^(RX|TX):\s*(\d+)$", text, re.MULTILINE)}

    return sizes(largest), sizes(present)


def link_differences(name: str, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> list[Difference]:
    """What of MTU, state and addresses differs; ``found`` is an entry of ``ip -json address show``."""
    differences: list[Difference] = []
    if "mtu" in wanted and found["mtu"] != wanted["mtu"]:
        command = ("ip", "link", "set", "dev", name, "mtu", str(wanted["mtu"]))
        differences.append(("mtu", str(found["mtu"]), str(wanted["mtu"]), (command,)))
    if wanted.get("up") and "UP" not in found["flags"]:
        differences.append(("state", "down", "up", (("ip", "link", "set", "dev", name, "up"),)))
    if wanted.get("tunnel") and found["operstate"] != "UP":  # a tunnel never reports one, and a run waits for it
        command = ("ip", "link", "set", "dev", name, "state", "up")
        differences.append(("operational state", found["operstate"], "UP", (command,)))
    if "addresses" in wanted:
        have = {f"{a['local']}/{a['prefixlen']}" for a in found["addr_info"] if a["family"] == "inet"}
        for address in sorted(set(wanted["addresses"]) - have):
            added = ("ip", "address", "add", address, "dev", name)
            differences.append((f"address {address}", "missing", "there", (added,)))
    return differences


def feature_differences(
    name: str, wanted: Mapping[str, bool], found: Mapping[str, tuple[bool, bool]]
) -> list[Difference]:
    """Features in another state than wanted. Raises NicError for one that the card lacks or that is fixed."""
    differences: list[Difference] = []
    for feature, on in sorted(wanted.items()):
        printed = PRINTED.get(feature, feature)
        if printed not in found:
            raise NicError(f"{name} has no feature {feature} (ethtool --show-features {name} lists them)")
        is_on, fixed = found[printed]
        if is_on != on:
            if fixed:
                raise NicError(f"{name}: {feature} is {_switch(is_on)}, and its driver lets nobody change that")
            command = ("ethtool", "--features", name, feature, _switch(on))
            differences.append((feature, _switch(is_on), _switch(on), (command,)))
    return differences


def ring_differences(
    name: str, wanted: Mapping[str, Any], largest: Mapping[str, int], present: Mapping[str, int]
) -> list[Difference]:
    """Rings of another size than wanted; ``max`` is the largest one, or none. Raises NicError for one beyond that."""
    differences: list[Difference] = []
    for ring, value in sorted(wanted.items()):
        if ring not in present or not largest.get(ring):
            if value == "max":
                continue
            raise NicError(f"{name} has no {ring} ring whose size can be set")
        size = largest[ring] if value == "max" else int(value)
        if size > largest[ring]:
            raise NicError(f"{name}: its {ring} ring has at most {largest[ring]} entries, not {size}")
        if present[ring] != size:
            command = ("ethtool", "--set-ring", name, ring, str(size))
            differences.append((f"{ring} ring", str(present[ring]), str(size), (command,)))
    return differences


def _switch(on: bool) -> str:
    return "on" if on else "off"


def output(*command: str) -> str:
    """What a command prints. Raises NicError with what it says when it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise NicError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def change(command: tuple[str, ...]) -> None:
    """Execute a command, again for PATIENCE_S while a namespace that is about to end has the interface it makes."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            output(*command)
        except NicError as error:
            if "exists" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return


def ring_listing(card: str) -> str:
    """What ethtool says of the rings of ``card``: nothing where its driver has none to speak of."""
    try:
        return output("ethtool", "--show-ring", card)
    except NicError as error:
        if "not supported" in str(error):
            return ""
        raise


def present_cards() -> list[dict[str, str]]:
    """Every network card with a device behind it: name, MAC address, place on the PCI bus."""
    cards = []
    for folder in sorted(CARDS.iterdir()):
        device = folder / "device"
        if device.exists():
            # A virtio card's device is a child of the one on the PCI bus.
            places = re.findall(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", str(device.resolve()))
            mac = (folder / "address").read_text().strip()
            cards.append({"name": folder.name, "mac": mac, "pci": places[-1] if places else ""})
    return cards


def find(link: str, wanted: Mapping[str, Any], patience_s: float) -> str:
    """Name of the card or tunnel of ``link``. Raises NicError when there is no card, or more than one."""
    if tunnel := wanted.get("tunnel"):
        return f"vxlan{tunnel['vni']}"
    end = time.monotonic() + patience_s
    while not (names := matching(wanted, present_cards())) and time.monotonic() < end:
        time.sleep(0.5)
    if len(names) != 1:
        sought = " and ".join(f"{key} {wanted[key]}" for key in ("mac", "pci") if wanted.get(key))
        raise NicError(f"link {link}: {len(names)} network cards have {sought or 'nothing that tells them apart'}")
    return names[0]


def with_vlan(card: str, vlan: int) -> str:
    """Name of the interface for the tagged frames of ``card``."""
    return f"{card[-10:]}.{vlan}"  # 15 characters at most; the ends of long names differ


def vxlan(tunnel: Mapping[str, Any]) -> tuple[str, ...]:
    """Words of ip-link(8) for one end of a tunnel. Its outer packets may be fragmented: a frame of 1500 bytes fits."""
    ends = ("local", tunnel["local"], "remote", tunnel["remote"])
    return ("type", "vxlan", "id", str(tunnel["vni"]), *ends, "dstport", "4789", "nolearning", "df", "unset")


def differences_of(name: str, wanted: Mapping[str, Any]) -> list[Difference]:
    """Everything about the card ``name`` that is not as wanted, offloads and rings first: they may reset the link."""
    differences: list[Difference] = []
    card = name
    if wanted.get("tunnel") and not (CARDS / name).exists():
        made = ("ip", "link", "add", name, "address", wanted["mac"], *vxlan(wanted["tunnel"]))
        return [(f"tunnel {name}", "missing", "there", (made,))]
    if wanted.get("rings"):
        differences += ring_differences(card, wanted["rings"], *rings(ring_listing(card)))
    if wanted.get("features"):
        listing = output("ethtool", "--show-features", card)
        differences += feature_differences(card, wanted["features"], features(listing))
    if wanted.get("vlan"):
        [found] = json.loads(output("ip", "-json", "address", "show", "dev", card))
        base = {key: value for key, value in wanted.items() if key != "addresses"}
        differences += link_differences(card, base, found)
        name = with_vlan(card, wanted["vlan"])
        if not (CARDS / name).exists():
            tag = ("type", "vlan", "id", str(wanted["vlan"]))
            made = ("ip", "link", "add", "link", card, "name", name, *tag)
            return [*differences, (f"interface {name}", "missing", "there", (made,))]
    [found] = json.loads(output("ip", "-json", "address", "show", "dev", name))
    return differences + link_differences(name, wanted, found)


def main(arguments: list[str]) -> int:
    """The command line; gives the exit status."""
    if arguments not in (["apply"], ["check"], ["find"]):
        print(__doc__, file=sys.stderr)
        return 2
    verb = arguments[0]
    try:
        links = merged(json.loads(path.read_text()) for path in sorted(STATES.glob("*.json")))
        names = {link: find(link, wanted, PATIENCE_S if verb == "apply" else 0) for link, wanted in links.items()}
        if verb == "find":
            tagged = {
                link: with_vlan(name, links[link]["vlan"]) for link, name in names.items() if links[link].get("vlan")
            }
            print(json.dumps(names | tagged))
            return 0
        remaining = 0
        for link, wanted in links.items():
            # Twice at most: a new interface is looked at once it is there.
            for _ in range(2 if verb == "apply" else 0):
                for what, before, after, commands in differences_of(names[link], wanted):
                    for command in commands:
                        change(command)
                    print(f"{link} ({names[link]}): {what}: {before} -> {after}")
            for what, before, after, _commands in differences_of(names[link], wanted):
                print(f"{link} ({names[link]}): {what} is {before}, not {after}", file=sys.stderr)
                remaining += 1
    except (NicError, OSError, ValueError) as error:
        print(f"longfat-nics: {error}", file=sys.stderr)
        return 2
    return 1 if remaining else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
