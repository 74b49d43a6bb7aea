# SPDX-License-Identifier: Apache-2.0
"""Random loss and jitter: from the manifest to the delay element's netem."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bottleneck import planned, port_of, problem

from longfat.spec.network import impairment_seed
from longfat.spec.runspec import Bursts, Egress, Impairment, Queue

BURSTS = "{enter: 0.1 %, leave: 25 %, in_burst: 90 %, between: 10 ppm}"


@pytest.mark.parametrize("backend", ["virtual", "mininet"])
def test_the_delay_element_impairs_and_the_bottleneck_stays_as_it_was(tmp_path: Path, backend: str) -> None:
    spec = planned(tmp_path, keys="loss: 1 %\n      jitter: 3 ms\n      reverse_loss: 0.5 %", backend=backend)
    forward, backward = port_of(spec, "delay", "server").egress, port_of(spec, "delay", "switch").egress
    assert (forward.impairment, forward.rate_bps, forward.delay_us) == (Impairment(10_000, None, 3_000), None, 50_000)
    assert (backward.impairment, backward.delay_us) == (Impairment(5_000), 50_000)
    nominal = replace(port_of(spec, "switch", "delay").egress, clock_ppb=0)
    assert nominal == Egress(100_000_000, queue=Queue("pfifo", 100))


def test_losses_in_bursts_are_a_chain_of_two_states(tmp_path: Path) -> None:
    impairment = port_of(planned(tmp_path, keys=f"loss: {BURSTS}"), "delay", "server").egress.impairment
    assert impairment == Impairment(bursts=Bursts(1_000, 250_000, 900_000, 10))
    settings = impairment.settings()
    assert (settings["leave"], settings["pass_in_burst"]) == (1 << 30, (100_000 << 32) // 1_000_000)
    assert Impairment(1_000_000).settings()["loss"] == 2**32 - 1


def test_each_interface_and_each_repetition_draws_for_itself(tmp_path: Path) -> None:
    spec = planned(tmp_path, keys="loss: 1 %\n      reverse_loss: 1 %")
    ports = [port_of(spec, "delay", "server"), port_of(spec, "delay", "switch")]
    seeds = {impairment_seed(one, port) for one in (spec, replace(spec, seed=spec.seed + 1)) for port in ports}
    assert len(seeds) == 4
    assert max(seeds) < 2**64


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ("jitter: 51 ms", "jitter"),
        ("jitter: 1 ms\n      delay_placement: reverse", "jitter"),
        ("reverse_jitter: 51 ms", "reverse_jitter"),
        ("jitter: 1 ms\n      jitter_order: kept\n      overtaking: 1 %", "overtaking"),
        ("overtaking: 1 %\n      delay_placement: reverse", "overtaking"),
        ("loss: 0.01", "loss"),
        ("loss: 101 %", "loss"),
        ("loss: {enter: 1 %}", "loss.leave"),
        ("loss: {enter: 1 %, leave: 9 %, mean: 3}", "loss.mean"),
    ],
)
def test_an_impairment_that_cannot_be_is_refused_where_it_stands(tmp_path: Path, keys: str, key: str) -> None:
    assert f"topology.{key}: " in problem(tmp_path, keys=keys)
