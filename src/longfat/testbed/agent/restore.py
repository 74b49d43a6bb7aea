# SPDX-License-Identifier: Apache-2.0
"""Changes that a run makes to the host itself: its cards go into namespaces, and limits of all networking are set.

Both are recorded in a file before the run and restored after it, or by the next run if this one's agent was killed.
The kernel returns a card when the last process of its namespace has ended; it then has the run's name and settings.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from longfat.guest import offloads
from longfat.guest.sysctls import read_sysctl, write_sysctl
from longfat.testbed.agent.facts import NICS

CARDS = Path("/sys/class/net")
PATIENCE_S = 20.0  # the kernel takes a namespace down some time after its last process


class NotRestored(Exception):
    """Something of the host is not as it was before the run."""


def note(file: Path, cards: Iterable[str], sysctls: Iterable[str]) -> None:
    """Write to ``file`` how the cards and the settings are now."""
    state = {
        "cards": [_card_state(name) for name in cards],
        "sysctls": {name: read_sysctl(name) for name in sysctls},
    }
    file.write_text(json.dumps(state))


def _card_state(name: str) -> dict[str, Any]:
    (facts,) = json.loads(_said("ip", "-json", "-details", "link", "show", "dev", name))
    return {
        "name": name,
        "address": facts["address"],
        "made": "linkinfo" in facts,  # a software interface, such as that of a VLAN
        "mtu": facts["mtu"],
        "txqueuelen": facts.get("txqlen", 1000),
        "gso_max_segs": facts.get("gso_max_segs"),
        "offloads": offloads.offloads_on(name),
    }


def give_back(file: Path) -> None:
    """Bring cards and settings into the state that ``file`` notes, and remove it. Raises NotRestored."""
    if not file.exists():
        return
    problems = []
    state = json.loads(file.read_text())
    for name, value in state["sysctls"].items():
        write_sysctl(name, value)
    for card in state["cards"]:
        try:
            _restore_card(card)
        except (NotRestored, OSError) as error:
            problems.append(f"{card['name']}: {error}")
    # Software interfaces have gone with the namespace: this makes them again, and states settings that are not recorded
    # here.
    done = subprocess.run([NICS, "apply"], capture_output=True, text=True, check=False)
    if done.returncode:
        problems.append(done.stderr.strip())
    if problems:
        raise NotRestored("; ".join(problems))
    file.unlink()


def _restore_card(card: dict[str, Any]) -> None:
    if card["made"]:
        return
    _await_name(card["address"], card["name"])
    _said("ip", "link", "set", "dev", card["name"], "down")
    settings = ["mtu", str(card["mtu"]), "txqueuelen", str(card["txqueuelen"])]
    if card["gso_max_segs"]:
        settings += ["gso_max_segs", str(card["gso_max_segs"])]
    _said("ip", "link", "set", "dev", card["name"], *settings, "up")
    offloads.set_offloads(card["name"], card["offloads"])


def _await_name(address: str, name: str) -> None:
    """Wait until the kernel has returned the card with the hardware address, and give it its name again.

    udev keeps the name that the run gave it and makes the old one another name of the same card: it is taken then.
    """
    end = time.monotonic() + PATIENCE_S
    while (found := _card_with(address)) != name:
        if time.monotonic() > end:
            raise NotRestored(f"the card with the address {address} is {found or 'missing'} after {PATIENCE_S:g} s")
        if found:
            for change in (
                ("set", "dev", found, "down"),
                ("property", "del", "dev", found, "altname", name),
                ("set", "dev", found, "name", name),
            ):
                subprocess.run(["ip", "link", *change], capture_output=True, check=False)
        time.sleep(0.1)


def _card_with(address: str) -> str | None:
    for path in sorted(CARDS.iterdir()):
        with suppress(FileNotFoundError):  # it has got another name meanwhile
            if (path / "device").exists() and (path / "address").read_text().strip() == address:
                return path.name
    return None


def _said(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotRestored(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout
