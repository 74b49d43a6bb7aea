# SPDX-License-Identifier: Apache-2.0
"""How long the programs of a run may run after their end."""

from __future__ import annotations

import dataclasses

from conftest import delay_spec
from hypothesis import given
from hypothesis import strategies as st

from longfat.guest.processes import DRAIN_S, LOSSY_DRAIN_S, drain_s
from longfat.spec.links import Bursts, Impairment
from longfat.spec.runspec import Egress, RunSpec

LOSSES = st.integers(1, 10**6).map(lambda ppm: Impairment(loss_ppm=ppm)) | st.integers(1, 10**6).map(
    lambda ppm: Impairment(bursts=Bursts(ppm, 10**6 - ppm))
)


def with_impairment(impairment: Impairment) -> RunSpec:
    spec = delay_spec()
    far, near = spec.links[0], spec.links[1]
    egress = Egress(delay_us=15_000, impairment=impairment)
    return dataclasses.replace(
        spec, links=(dataclasses.replace(far, b=dataclasses.replace(far.b, egress=egress)), near)
    )


@given(LOSSES)
def test_where_packets_are_lost_at_random_a_program_may_run_as_long_as_linux_retransmits(loss: Impairment) -> None:
    assert drain_s(with_impairment(loss)) == LOSSY_DRAIN_S


@given(st.integers(1, 10_000))
def test_jitter_alone_gives_a_program_no_more_time(jitter_us: int) -> None:
    assert drain_s(with_impairment(Impairment(jitter_us=jitter_us))) == drain_s(delay_spec()) == DRAIN_S
