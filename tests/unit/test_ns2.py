# SPDX-License-Identifier: Apache-2.0
"""Runs in ns-2: the script, and a parameter that it lacks."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from bottleneck import planned
from test_queues import RED

from longfat.backends.ns2 import Ns2Backend, script
from longfat.spec.runspec import Node, RunSpec


def lines(spec: RunSpec, word: str) -> list[str]:
    return [line for line in script(spec).splitlines() if line.startswith(f"{word} ")]


def test_red_is_set_in_packets_and_with_the_weight_of_the_kernel(tmp_path: Path) -> None:
    (port,) = (line for line in lines(planned(tmp_path, RED), "port") if " RED " in line)
    for words in ("RED 900", "thresh_ 50 maxthresh_ 150 linterm_ 10", "q_weight_ 0.015625", "setbit_ 1 gentle_ 0"):
        assert words in port


def test_a_parameter_without_a_model_is_refused(tmp_path: Path) -> None:
    spec = planned(tmp_path, RED)
    sender = Node("client1", "sender", {"net.ipv4.tcp_highspeed.current_window": "1"})
    flow = dataclasses.replace(spec.flows[0], cca="highspeed")
    bent = dataclasses.replace(spec, nodes=(sender, *spec.nodes[1:]), flows=(flow,))
    assert Ns2Backend(None, "2.35", ()).refuses(bent) == ("ns-2 has current_window = 0 only, and f1 has 1",)
