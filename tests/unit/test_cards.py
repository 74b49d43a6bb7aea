# SPDX-License-Identifier: Apache-2.0
"""Cards and busy hosts: from the manifest to nodes and netem, read back, and judged by gates."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_backend import FakeBackend
from test_guest_requests import shown
from test_red import study

from longfat.errors import StudyError
from longfat.gates import Evidence
from longfat.guest.qdisc import achieved_egress, card_commands
from longfat.guest.wire import Wire
from longfat.manifest.load import load_study
from longfat.network import lay_out, route
from longfat.plan import build_plan
from longfat.runspec import Card, Egress, RunSpec
from longfat.traffic import misses

PLAIN = "{limit: 100}"
BOTH = "{interrupt_moderation: 100 us, packet_time: 8 us, input_queue: 300}"
CARD = Card(100, 8, 300)


def planned(tmp_path: Path, hosts: str = BOTH, keys: str = "receivers: 1", backend: str = "virtual") -> RunSpec:
    (run,) = build_plan(study(tmp_path, f"{PLAIN}\n      {keys}", hosts), pins={"backend": backend}).runs
    return run.spec


def test_each_host_has_a_card_that_what_it_is_sent_passes(tmp_path: Path) -> None:
    spec = planned(tmp_path)
    assert [node.name for node in spec.nodes if node.name.startswith("card")] == ["card1", "card2"]
    arriving = {port.peer: port.egress for port in lay_out(spec).all_ports() if port.egress.card}
    assert arriving == dict.fromkeys(("client1", "server"), Egress(card=CARD))


@pytest.mark.parametrize("keys", ["receivers: 1", "loss: 1 %", "reverse_queue: {limit: 50}"])
def test_all_else_of_the_way_stays_as_it_was(tmp_path: Path, keys: str) -> None:
    plain, with_cards = (planned(tmp_path, hosts, keys) for hosts in ("{}", BOTH))

    def ways(spec: RunSpec) -> list[list[Egress]]:
        both = route(spec, "client1", "server"), route(spec, "server", "client1")
        return [[port.egress for port in way if port.egress != Egress() and not port.egress.card] for way in both]

    assert ways(with_cards) == ways(plain)


def test_a_direct_cable_and_a_graph_have_cards_too(tmp_path: Path) -> None:
    text = """\
format: 2
study: example
title: x
algorithms: {standard: {cca: reno}}
hosts: {packet_time: 5 us}
defaults: {flow: {duration: 1 s}}
experiments:
  - id: cable
    topology: {kind: direct, rate: 1 Gbit/s, rtt: 1 ms}
    flows: [{name: f1, algorithm: standard, from: client1, to: server}]
  - id: graph
    topology:
      kind: graph
      senders: [a]
      receivers: [b]
      routers: [r]
      links: [{between: [a, r], rate: 1 Gbit/s}, {between: [r, b], rate: 10 Mbit/s, rtt: 10 ms}]
    flows: [{name: f1, algorithm: standard, from: a, to: b}]
"""
    (tmp_path / "study.yaml").write_text(text)
    plan = build_plan(load_study(tmp_path / "study.yaml"), pins={})
    for run, (sender, receiver) in zip(plan.runs, (("client1", "server"), ("a", "b")), strict=True):
        forward = [port.node for port in route(run.spec, sender, receiver)]
        assert (forward[:2], forward[-1]) == ([sender, "card1"], "card2")
        cards = [port.egress.card for port in route(run.spec, receiver, sender)]
        assert cards[-1] == Card(packet_us=5)
        assert not any(cards[:-1])


def test_a_study_without_the_keys_has_the_runs_that_it_had(tmp_path: Path) -> None:
    assert "card" not in planned(tmp_path, "{}").to_json()
    assert planned(tmp_path, "{packet_time: 0 us, input_queue: 300}") == planned(tmp_path, "{}")
    assert RunSpec.from_json(planned(tmp_path).to_json()) == planned(tmp_path)


@pytest.mark.parametrize("card", [CARD, Card(moderation_us=100), Card(packet_us=7, input_packets=50)])
def test_a_card_comes_back_as_the_kernel_was_told(card: Card) -> None:
    told = [shown(line, drops=3) for line in card_commands("a-eth0", card)]
    found = achieved_egress(told, "a-eth0")
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
    spec, folder = planned(tmp_path), tmp_path / "run"
    folder.mkdir()
    FakeBackend().run(spec, folder)
    achieved, reports = (json.loads((folder / f"{name}.json").read_text()) for name in ("achieved", "flows"))
    (port,) = (item for item in achieved["interfaces"] if "card" in item and item["node"] == "card2")
    bend(port)
    found = misses(Evidence(spec, achieved, reports))
    assert found == said if said == () else said in found[0]


@pytest.mark.parametrize(
    "hosts",
    ["{packet_time: 11 ms}", "{interrupt_moderation: 5}", "{packet_time: 5 us, input_queue: 0}"],
)
def test_faulty_keys_are_refused_with_their_place(tmp_path: Path, hosts: str) -> None:
    with pytest.raises(StudyError) as caught:
        study(tmp_path, PLAIN, hosts)
    (found,) = caught.value.problems
    assert ".hosts." in found.key
