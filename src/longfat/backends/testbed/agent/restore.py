# SPDX-License-Identifier: Apache-2.0
"""Changes of a run to the host itself: its cards move into namespaces, and global network limits are set.

A file records both before the run. They are restored after it, or by the next run if the agent was killed. The kernel
returns a card after the end of its namespace, with the name and the settings of the run.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from longfat.backends.testbed.agent.facts import NICS
from longfat.guest.interfaces import offloads_on, set_offloads
from longfat.guest.sysctls import read_sysctl, write_sysctl

CARDS = Path("/sys/class/net")
PATIENCE_S = 20.0  # the kernel removes a namespace some time after its last process


class NotRestored(Exception):
    """Error of a host that still differs from its state before the run."""


def record(file: Path, cards: Iterable[str], sysctls: Iterable[str]) -> None:
    """Write the present state of cards and sysctls to ``file``."""
    state = {
        "cards": [_card_state(name) for name in cards],
        "sysctls": {name: read_sysctl(name) for name in sysctls},
    }
    file.write_text(json.dumps(state))


def _card_state(name: str) -> dict[str, Any]:
    (facts,) = json.loads(_run("ip", "-json", "-details", "link", "show", "dev", name))
    return {
        "name": name,
        "address": facts["address"],
        "made": "linkinfo" in facts,  # a software interface, such as a VLAN
        "mtu": facts["mtu"],
        "txqueuelen": facts.get("txqlen", 1000),
        "gso_max_segs": facts.get("gso_max_segs"),
        "offloads": offloads_on(name),
    }


def restore(file: Path) -> None:
    """Restore cards and sysctls to the state in ``file``, and remove it. Raises NotRestored."""
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
    # Recreate software interfaces, which ended with their namespace, and apply settings that are not recorded here.
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
    _run("ip", "link", "set", "dev", card["name"], "down")
    settings = ["mtu", str(card["mtu"]), "txqueuelen", str(card["txqueuelen"])]
    if card["gso_max_segs"]:
        settings += ["gso_max_segs", str(card["gso_max_segs"])]
    _run("ip", "link", "set", "dev", card["name"], *settings, "up")
    set_offloads(card["name"], card["offloads"])


def _await_name(address: str, name: str) -> None:
    """Wait until the kernel returns the card with the hardware address, and rename it.

    udev keeps the name from the run and adds the old one as an alternative name of the card, which blocks a renaming.
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
        with suppress(FileNotFoundError):  # renamed meanwhile
            if (path / "device").exists() and (path / "address").read_text().strip() == address:
                return path.name
    return None


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotRestored(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout
