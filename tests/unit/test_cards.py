# SPDX-License-Identifier: Apache-2.0
"""Cards and busy hosts: from the manifest to nodes, and judged by a gate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bottleneck import missed, planned

from longfat.spec.network import lay_out
from longfat.spec.runspec import Card, Egress

BOTH = "{interrupt_moderation: 100 us, packet_time: 8 us, input_queue: 300}"


def test_each_host_has_a_card_that_what_it_is_sent_passes(tmp_path: Path) -> None:
    spec = planned(tmp_path, hosts=BOTH)
    assert [node.name for node in spec.nodes if node.name.startswith("card")] == ["card1", "card2"]
    arriving = {port.peer: port.egress for port in lay_out(spec).all_ports() if port.egress.card}
    assert arriving == dict.fromkeys(("client1", "server"), Egress(card=Card(100, 8, 300)))


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
