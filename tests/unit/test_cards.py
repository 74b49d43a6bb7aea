# SPDX-License-Identifier: Apache-2.0
"""Cards and busy hosts: from the manifest to nodes and netem, read back, and judged by gates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bottleneck import missed, planned
from test_guest_requests import shown

from longfat.guest.qdisc import achieved_egress, card_commands
from longfat.guest.wire import Wire
from longfat.spec.network import lay_out
from longfat.spec.runspec import Card, Egress, RunSpec

BOTH = "{interrupt_moderation: 100 us, packet_time: 8 us, input_queue: 300}"
CARD = Card(100, 8, 300)


def test_each_host_has_a_card_that_what_it_is_sent_passes(tmp_path: Path) -> None:
    spec = planned(tmp_path, hosts=BOTH)
    assert [node.name for node in spec.nodes if node.name.startswith("card")] == ["card1", "card2"]
    arriving = {port.peer: port.egress for port in lay_out(spec).all_ports() if port.egress.card}
    assert arriving == dict.fromkeys(("client1", "server"), Egress(card=CARD))


def test_a_study_without_the_keys_has_the_runs_that_it_had(tmp_path: Path) -> None:
    assert "card" not in planned(tmp_path, hosts="{}").to_json()
    assert planned(tmp_path, hosts="{packet_time: 0 us, input_queue: 300}") == planned(tmp_path, hosts="{}")
    assert RunSpec.from_json(planned(tmp_path, hosts=BOTH).to_json()) == planned(tmp_path, hosts=BOTH)


@pytest.mark.parametrize("card", [CARD, Card(moderation_us=100), Card(packet_us=7, input_packets=50)])
def test_a_card_comes_back_as_it_was_set(card: Card) -> None:
    qdiscs = [shown(line, drops=3) for line in card_commands("a-eth0", card)]
    found = achieved_egress(qdiscs, "a-eth0")
    assert found["card"] == [{k: v for k, v in one.items() if k != "latency"} for one in card.settings()]
    assert (found["drops"], found["delay_us"], found["queue_kind"], "impairment" in found) == (3, 0, None, False)
    assert Wire.of(Egress(card=card)) is None


@pytest.mark.parametrize(
    ("bend", "said"),
    [
        (lambda port: port.update(drops=12), ()),
        (lambda port: port["card"].pop(), "card of server is [{'limit': 1000000, 'slot': 100000}], declared"),
        (lambda port: port["card"][1].update(packet=9), "'packet': 9"),
    ],
)
def test_a_card_that_was_not_achieved_is_a_miss(
    tmp_path: Path, bend: Callable[[dict[str, Any]], None], said: str | tuple[()]
) -> None:
    spec = planned(tmp_path, hosts=BOTH)
    found = missed(spec, tmp_path / "run", lambda port: "card" in port and port["node"] == "card2", bend)
    assert found == said if said == () else said in found[0]
