# SPDX-License-Identifier: Apache-2.0
"""The program longfat-nics: what differs from the stated state, and what cannot be stated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import longfat_nics
import pytest
from longfat_nics import (
    NicError,
    feature_differences,
    features,
    link_differences,
    main,
    matching,
    merged,
    ring_differences,
    rings,
    with_vlan,
)

DATA = Path(__file__).parents[1] / "data"
FEATURES = features((DATA / "ethtool-6.1-features-virtio.txt").read_text())
LARGEST, PRESENT = rings((DATA / "ethtool-6.1-rings-virtio.txt").read_text())
CARDS = [
    {"name": "eth0", "mac": "52:54:00:00:00:01", "pci": "0000:01:00.0"},
    {"name": "eth1", "mac": "52:54:00:00:00:02", "pci": "0000:02:00.0"},
]
FOUND = {
    "mtu": 1500,
    "flags": ["BROADCAST", "MULTICAST"],
    "addr_info": [{"family": "inet", "local": "10.0.0.1", "prefixlen": 30}, {"family": "inet6", "local": "fe80::1"}],
}


@pytest.mark.parametrize(
    ("mac", "pci", "found"),
    [
        ("52:54:00:00:00:01", None, ["eth0"]),
        (None, "0000:02:00.0", ["eth1"]),
        ("52:54:00:00:00:01", "0000:02:00.0", []),
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


def test_mtu_state_and_addresses_are_compared() -> None:
    differences = link_differences("eth0", {"mtu": 9000, "up": True, "addresses": ["10.0.1.1/30"]}, FOUND)
    assert [(what, before, after) for what, before, after, _ in differences] == [
        ("mtu", "1500", "9000"),
        ("state", "down", "up"),
        ("address 10.0.1.1/30", "missing", "there"),
    ]
    assert differences[0][3] == (("ip", "link", "set", "dev", "eth0", "mtu", "9000"),)


@pytest.mark.parametrize(
    "wanted", [{"mtu": 1500, "up": True, "addresses": ["10.0.0.1/30"]}, {"mac": "52:54:00:00:00:01"}]
)
def test_a_card_as_stated_has_no_difference(wanted: dict[str, Any]) -> None:
    assert link_differences("eth0", wanted, FOUND | {"flags": ["UP"]}) == []


def test_features_are_read_with_their_short_and_their_long_names() -> None:
    [(what, before, after, commands)] = feature_differences("eth0", {"gro": False, "tso": False}, FEATURES)
    assert (what, before, after) == ("gro", "on", "off")
    assert commands == (("ethtool", "--features", "eth0", "gro", "off"),)
    assert feature_differences("eth0", {"rx-vlan-offload": False, "highdma": True}, FEATURES) == []


@pytest.mark.parametrize("feature", ["lro", "warp"])  # fixed by the driver; missing
def test_an_impossible_feature_is_an_error(feature: str) -> None:
    with pytest.raises(NicError, match=feature):
        feature_differences("eth0", {feature: True}, FEATURES)


def test_the_largest_ring_is_asked_for_by_name() -> None:
    assert ring_differences("eth0", {"rx": "max", "tx": 256}, LARGEST, PRESENT) == []
    [(what, before, after, commands)] = ring_differences("eth0", {"rx": "max"}, {"rx": 4096}, {"rx": 512})
    assert (what, before, after) == ("rx ring", "512", "4096")
    assert commands == (("ethtool", "--set-ring", "eth0", "rx", "4096"),)


@pytest.mark.parametrize("sizes", [{"rx": 256, "tx": 256}, {}])
def test_a_ring_beyond_the_largest_is_an_error(sizes: dict[str, int]) -> None:
    assert LARGEST == PRESENT == {"rx": 256, "tx": 256}
    assert ring_differences("eth0", {"rx": "max"}, sizes, sizes) == []
    with pytest.raises(NicError, match="rx ring"):
        ring_differences("eth0", {"rx": 512}, sizes, sizes)


def test_the_interface_of_a_vlan_has_a_name_that_linux_takes() -> None:
    assert with_vlan("enp1s0f0np0", 4094) == "enp1s0f0np.4094"
    assert len(with_vlan("enp1s0f0np0", 4094)) == 15


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


def test_find_names_the_cards(card: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["find"]) == 0
    assert json.loads(capsys.readouterr().out) == {"left": "eth0"}


def test_a_card_that_is_not_there_is_an_error(
    card: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_cards() -> list[dict[str, Any]]:
        return []

    monkeypatch.setattr(longfat_nics, "present_cards", no_cards)
    assert main(["check"]) == 2
    assert "link left: 0 network cards have mac 52:54:00:00:00:01" in capsys.readouterr().err


def test_another_verb_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reset"]) == 2
    assert "longfat-nics VERB" in capsys.readouterr().err
