# SPDX-License-Identifier: Apache-2.0
"""The program longfat-nics: differences from the stated state, and states that contradict each other."""

from __future__ import annotations

import json
from pathlib import Path

import longfat_nics
import pytest
from longfat_nics import NicError, main, merged

CARDS = [
    {"name": "eth0", "mac": "52:54:00:00:00:01", "pci": "0000:01:00.0"},
    {"name": "eth1", "mac": "52:54:00:00:00:02", "pci": "0000:02:00.0"},
]


def test_several_files_state_one_link_without_contradiction() -> None:
    assert merged([{"left": {"mtu": 9000}}, {"left": {"rings": {}}, "right": {"up": True}}]) == {
        "left": {"mtu": 9000, "rings": {}},
        "right": {"up": True},
    }
    with pytest.raises(NicError, match="link left: mtu is both 9000 and 1500"):
        merged([{"left": {"mtu": 9000}}, {"left": {"mtu": 1500}}])


class Machine:
    """A machine with two cards, whose programs change what they say they change."""

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
    right = {"pci": CARDS[1]["pci"], "up": True}
    left = {"mac": CARDS[0]["mac"], "mtu": 9000, "up": True}
    (tmp_path / "10-data-plane.json").write_text(json.dumps({"left": left, "right": right}))
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


@pytest.mark.parametrize("lost", ["RTNETLINK answers: File exists", "Error: 8021q: VLAN device already exists."])
def test_an_interface_that_a_namespace_of_the_last_run_still_has_is_awaited(
    card: Machine, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    answers = [lost, lost, "Error: no such device."]

    def busy(*command: str) -> str:
        raise NicError(f"{command[0]}: {answers.pop(0)}")

    monkeypatch.setattr(longfat_nics, "output", busy)
    with pytest.raises(NicError, match="no such device"):
        longfat_nics.change(("ip", "link", "add"))
    answers.append(lost)
    monkeypatch.setattr(longfat_nics, "PATIENCE_S", -1)
    with pytest.raises(NicError, match="exists"):
        longfat_nics.change(("ip", "link", "add"))


def test_a_card_that_is_not_there_is_an_error(
    card: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(longfat_nics, "present_cards", list)
    assert main(["check"]) == 2
    assert "link left: 0 network cards have mac 52:54:00:00:00:01" in capsys.readouterr().err
