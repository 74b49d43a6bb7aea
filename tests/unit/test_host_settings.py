# SPDX-License-Identifier: Apache-2.0
"""Settings of single hosts: laid key by key over those of all hosts, from the manifest to the RunSpec."""

from __future__ import annotations

from pathlib import Path

import pytest

from longfat.backends.protocol import needed
from longfat.plan import build_plan
from longfat.plan.settings import expanded, settings
from longfat.spec.network import lay_out
from longfat.spec.runspec import Node, RunSpec
from longfat.study.load import load_study, study_of
from longfat.study.schema.source import read_source
from longfat.study.warn import study_warnings
from longfat.system.errors import StudyError

STUDY = """\
format: 2
study: example
title: An example
algorithms: {{standard: {{cca: cubic}}}}
hosts: {general}
defaults:
  flow: {{from: client1, to: server1, duration: 1 s, algorithm: standard}}
experiments:
  - id: first
    topology: {{kind: {kind}}}
    hosts: {own}
    flows: [{{name: f}}]
    {more}
"""
DUMBBELL = "dumbbell, rate: 10 Mbit/s, host_rate: 1 Gbit/s, rtt: 20 ms, senders: 3, receivers: 2"
GRAPH = "graph, senders: [client1], receivers: [server1], links: [{between: [client1, server1], rate: 1 Gbit/s}]"


def written(tmp_path: Path, general: str = "{}", own: str = "{}", more: str = "", kind: str = DUMBBELL) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.format(general=general, own=own, more=more, kind=kind), encoding="utf-8")
    return path


def specs(path: Path) -> list[RunSpec]:
    return [run.spec for run in build_plan(load_study(path), pins={}).runs]


def nodes(path: Path) -> dict[str, Node]:
    (spec,) = specs(path)
    return {node.name: node for node in spec.nodes}


def test_a_sysctl_of_one_sender_leaves_the_others_alone(tmp_path: Path) -> None:
    path = written(
        tmp_path, "{sysctls: {net.ipv4.tcp_ecn: 2}}", "{per_host: {client2: {sysctls: {net.ipv4.tcp_ecn: 1}}}}"
    )
    found = {name: node.sysctls.get("net.ipv4.tcp_ecn") for name, node in nodes(path).items() if "switch" not in name}
    assert found == {"client1": "2", "client2": "1", "client3": "2", "server1": "2", "server2": "2"}


def test_the_layers_are_laid_key_by_key(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "{offloads: [gro], per_host: {client3: {offloads: [], sysctls: {net.ipv4.tcp_sack: 0}}}}",
        "{sysctls: {net.ipv4.tcp_sack: 1}, per_host: {client3: {sysctls: {net.ipv4.tcp_ecn: 1}}}}",
    )
    found = nodes(path)
    assert (found["client1"].offloads, found["client3"].offloads) == (("gro",), ())
    assert found["client1"].sysctls["net.ipv4.tcp_sack"] == "1"
    own = {name: found["client3"].sysctls[name] for name in ("net.ipv4.tcp_sack", "net.ipv4.tcp_ecn")}
    assert own == {"net.ipv4.tcp_sack": "0", "net.ipv4.tcp_ecn": "1"}


def test_long_segments_of_one_sender_are_refused_before_a_queue_that_counts_packets(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="the limit of queue pfifo counts packets"):
        load_study(written(tmp_path, own="{per_host: {client1: {offloads: [gso]}}}"))
    assert load_study(written(tmp_path, "{offloads: [gso]}", "{per_host: {client1: {offloads: []}}}"))


@pytest.mark.parametrize("kind", [DUMBBELL, GRAPH, "delay, rate: 10 Mbit/s, rtt: 20 ms", "direct, rate: 10 Mbit/s"])
def test_each_host_has_its_own_local_queue(tmp_path: Path, kind: str) -> None:
    server = "server1" if "server1" in kind or "receivers" in kind else "server"
    path = written(
        tmp_path, "{txqueuelen: 70}", f"{{per_host: {{{server}: {{txqueuelen: 300, tx_ring: 5}}}}}}", kind=kind
    )
    path.write_text(path.read_text().replace("to: server1", f"to: {server}"))
    (spec,) = specs(path)
    ports = {port.node: port.egress.queue.limit_packets for port in lay_out(spec).all_ports()}
    assert (ports["client1"], ports[server]) == (70, 305)


def test_only_the_host_that_takes_time_has_a_card_before_it(tmp_path: Path) -> None:
    (spec,) = specs(
        written(tmp_path, own="{per_host: {client2: {packet_time: 5 us}, server1: {interrupt_moderation: 1 ms}}}")
    )
    found = {port.peer: port.egress.card for port in lay_out(spec).all_ports() if port.egress.card}
    assert {name: card and (card.moderation_us, card.packet_us) for name, card in found.items()} == {
        "client2": (0, 5),
        "server1": (1000, 0),
    }


def test_recovery_and_image_are_of_one_host(tmp_path: Path) -> None:
    found = nodes(written(tmp_path, own="{per_host: {client1: {recovery: newreno, image: mine}}}"))
    assert (found["client1"].recovery, found["client1"].image) == ("newreno", "mine")
    assert (found["client2"].recovery, found["client2"].image) == (None, None)
    assert found["client1"].sysctls["net.ipv4.tcp_sack"] == "0"


def test_a_factor_may_be_the_setting_of_one_host(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        own='{per_host: {client1: {sysctls: {net.ipv4.tcp_ecn: "${ecn}"}}}}',
        more="sweep: {product: {ecn: [0, 1]}}",
    )
    found = {node.sysctls["net.ipv4.tcp_ecn"] for spec in specs(path) for node in spec.nodes if node.name == "client1"}
    assert found == {"0", "1"}


@pytest.mark.parametrize(
    ("general", "own", "message"),
    [
        ("{}", "{per_host: {client9: {txqueuelen: 5}}}", "unknown node 'client9'"),
        ("{per_host: {sender: {txqueuelen: 5}}}", "{}", "unknown node 'sender'"),
        ("{}", "{per_host: {switch: {txqueuelen: 5}}}", "unknown node 'switch'"),
        ("{}", "{per_host: {client1: {mtu: 9000 B}}}", "unknown key 'mtu'"),
        ("{}", "{per_host: {client1: {sysctls: {net.core.wmem_max: 5}}}}", "one value for all hosts"),
        ("{}", "{per_host: {server1: {sysctls: {kernel.panic: 5}}}}", "not a network sysctl"),
    ],
)
def test_what_no_single_host_can_have_is_named(tmp_path: Path, general: str, own: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        load_study(written(tmp_path, general, own))
    assert message in str(caught.value.problems)
    assert "per_host" in str(caught.value.problems)


def test_a_parameter_is_an_algorithm_s_or_the_host_s(tmp_path: Path) -> None:
    text = written(tmp_path, own="{per_host: {HOST: {sysctls: {net.ipv4.tcp_slow_start_after_idle: 0}}}}").read_text()
    path = tmp_path / "study.yaml"
    path.write_text(text.replace("HOST", "client2"))
    assert load_study(path)


def test_a_sysctl_that_the_kernel_lacks_is_warned_of(tmp_path: Path) -> None:
    source = read_source(written(tmp_path, own="{per_host: {client1: {sysctls: {net.ipv4.tcp_nonsense: 1}}}}"))
    (warning,) = study_warnings(source, study_of(source))
    assert "tcp_nonsense" in str(warning)
    assert "per_host" in str(warning)


def test_plan_shows_what_a_host_has_for_itself(tmp_path: Path) -> None:
    study = load_study(
        written(
            tmp_path,
            "{per_host: {client1: {txqueuelen: 5}}}",
            "{per_host: {client1: {sysctls: {net.ipv4.tcp_ecn: 1}}}}",
        )
    )
    (point,) = study.experiments[0].points
    found = {key: setting.text for key, setting in settings(point.experiment, study).items() if "per_host" in key}
    assert found == {
        "hosts.per_host.client1.txqueuelen": "5",
        "hosts.per_host.client1.sysctls.net.ipv4.tcp_ecn": "1",
    }
    own = {"client1": {"txqueuelen": 5, "sysctls": {"net.ipv4.tcp_ecn": "1"}}}
    assert expanded(point.experiment, study)["hosts"]["per_host"] == own


def test_a_backend_is_asked_for_what_one_host_needs(tmp_path: Path) -> None:
    (plain,), (reno,) = (
        specs(written(tmp_path)),
        specs(written(tmp_path, own="{per_host: {client2: {recovery: reno}}}")),
    )
    assert {*needed(reno)} - {*needed(plain)}
