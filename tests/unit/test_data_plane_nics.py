# SPDX-License-Identifier: Apache-2.0
"""The program longfat-nics: differences from the stated state, and states that contradict each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import longfat_nics
import pytest
from longfat_nics import (
    NicError,
    main,
    matching,
    merged,
)

CARDS = [
    {"name": "eth0", "mac": "52:54:00:00:00:01", "pci": "0000:01:00.0"},
    {"name": "eth1", "mac": "52:54:00:00:00:02", "pci": "0000:02:00.0"},
]


@pytest.mark.parametrize(
    ("mac", "pci", "found"),
    [
        ("52:54:00:00:00:01", None, ["eth0"]),
        (None, "0000:02:00.0", ["eth1"]),
        (None, None, []),
    ],
)
def test_a_card_is_found_by_its_addresses(mac: str | None, pci: str | None, found: list[str]) -> None:
    assert matching({"mac": mac, "pci": pci}, CARDS) == found


def test_several_files_state_one_link_without_contradiction() -> None:
    assert merged([{"left": {"mtu": 9000}}, {"left": {"rings": {}}, "right": {"up": True}}]) == {
        "left": {"mtu": 9000, "rings": {}},
        "right": {"up": True},
    }
    with pytest.raises(NicError, match="link left: mtu is both 9000 and 1500"):
        merged([{"left": {"mtu": 9000}}, {"left": {"mtu": 1500}}])


class Machine:
    """A machine with one card, whose programs change what they say they change."""

    def __init__(self) -> None:
        self.mtu = 1500
        self.deaf = False

    def __call__(self, *command: str) -> str:
        if command[:3] == ("ip", "link", "set"):
            self.mtu = self.mtu if self.deaf else int(command[-1])
            return ""
        assert command[:3] == ("ip", "-json", "address")
        return json.dumps([{"mtu": self.mtu, "flags": ["UP"], "addr_info": []}])


@pytest.fixture
def card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    (tmp_path / "10-data-plane.json").write_text(
        json.dumps({"left": {"mac": CARDS[0]["mac"], "mtu": 9000, "up": True}})
    )
    machine = Machine()
    monkeypatch.setattr(longfat_nics, "STATES", tmp_path)
    monkeypatch.setattr(longfat_nics, "output", machine)
    monkeypatch.setattr(longfat_nics, "present_cards", lambda: CARDS)
    return machine


def test_check_says_what_differs_and_changes_nothing(card: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 1
    assert card.mtu == 1500
    assert capsys.readouterr().err == "left (eth0): mtu is 1500, not 9000\n"


def test_apply_says_what_it_changes_and_the_second_time_nothing(
    card: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["apply"]) == 0
    assert capsys.readouterr().out == "left (eth0): mtu: 1500 -> 9000\n"
    assert main(["apply"]) == main(["check"]) == 0
    assert capsys.readouterr().out == ""
    card.mtu, card.deaf = 1500, True
    assert main(["apply"]) == 1


def test_a_card_that_is_not_there_is_an_error(
    card: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_cards() -> list[dict[str, Any]]:
        return []

    monkeypatch.setattr(longfat_nics, "present_cards", no_cards)
    assert main(["check"]) == 2
    assert "link left: 0 network cards have mac 52:54:00:00:00:01" in capsys.readouterr().err


def test_a_tunnel_is_made_once_with_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {"vni": 7, "local": "192.0.2.1", "remote": "192.0.2.2"}
    states, cards = tmp_path / "states", tmp_path / "cards"
    for folder in (states, cards):
        folder.mkdir()
    (states / "1.json").write_text(json.dumps({"left": {"mac": "02:00:00:00:00:07", "tunnel": ends, "up": True}}))
    commands = []

    def output(*command: str) -> str:
        commands.append(command)
        if command[:3] == ("ip", "link", "add"):
            (cards / command[3]).mkdir()
        state = "UP" if ("ip", "link", "set", "dev", "vxlan7", "state", "up") in commands else "UNKNOWN"
        return json.dumps([{"mtu": 1500, "flags": ["UP"], "operstate": state, "addr_info": []}])

    monkeypatch.setattr(longfat_nics, "STATES", states)
    monkeypatch.setattr(longfat_nics, "CARDS", cards)
    monkeypatch.setattr(longfat_nics, "output", output)
    assert [main(["check"]), main(["apply"]), main(["apply"]), main(["check"])] == [1, 0, 0, 0]
    (made,) = (command for command in commands if command[:3] == ("ip", "link", "add"))
    assert made[3:6] == ("vxlan7", "address", "02:00:00:00:00:07")
    assert {"192.0.2.1", "192.0.2.2", "7"} <= set(made)
