# SPDX-License-Identifier: Apache-2.0
"""Application-limited flows: the manifest's keys, the guest's report, and the gate of the rate that it gave."""

from __future__ import annotations

from pathlib import Path

import pytest
from manifests import HEAD, keys_of, spec_of

from longfat.guest.app_rate import due_bytes
from longfat.guest.kinds.flows import flow_results
from longfat.spec.gates import Evidence
from longfat.spec.runspec import RunSpec
from longfat.study.traffic.flows import applications_gave_their_rate

MANIFEST = (
    HEAD
    + """\
  - id: call
    topology: {kind: dumbbell, rate: 100 Mbit/s, rtt: 30 ms, senders: 1}
    flows: [{name: call, from: client1, to: server, algorithm: standard, duration: 3 s, KEYS}]
"""
)


def planned(folder: Path, keys: str) -> RunSpec:
    return spec_of(folder, MANIFEST, ("KEYS", keys))


def test_in_off_time_nothing_more_is_due() -> None:
    turns = {"rate_bps": 4_000_000, "on_us": 500_000, "off_us": 1_000_000}
    found = [due_bytes(turns, int(at * 1e6)) for at in (0.25, 0.5, 1.0, 1.5, 1.75, 3.0)]
    assert found == [125_000, 250_000, 250_000, 250_000, 375_000, 500_000]


def test_a_rate_and_its_turns_stand_in_the_run_spec(tmp_path: Path) -> None:
    spec = planned(tmp_path, "rate: 4 Mbit/s, on_time: 500 ms, off_time: 1 s")
    (flow,) = spec.flows
    assert (flow.rate_bps, flow.on_us, flow.off_us) == (4_000_000, 500_000, 1_000_000)
    assert flow.mean_rate_bps == pytest.approx(4e6 / 3)


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ("rate: 1 Mbit/s, transfer: 1 MB", "rate"),
        ("rate: 1 Mbit/s, on_time: 1 s", "on_time"),
        ("rate: 1 Mbit/s, off_time: 1 s", "off_time"),
        ("on_time: 1 s, off_time: 1 s", "on_time"),
    ],
)
def test_keys_that_do_not_go_together_are_named(tmp_path: Path, keys: str, key: str) -> None:
    assert keys_of(tmp_path, MANIFEST, ("KEYS", keys)) == [f"experiments[0].flows[0].{key}"]


@pytest.mark.parametrize(
    ("sent", "blocked_us", "valid"),
    [
        (1_500_000, 0, True),
        (1_499_000, 0, True),  # less than a write
        (1_400_000, 0, False),  # nothing held it back
        (1_400_000, 300_000, True),  # the network did
        (1_501_000, 0, False),  # more than it had
    ],
)
def test_an_application_gives_what_is_due_unless_the_network_holds_it_back(
    tmp_path: Path, sent: int, blocked_us: int, *, valid: bool
) -> None:
    spec = planned(tmp_path, "rate: 4 Mbit/s")
    report = {"flow": "call", "bytes_sent": sent, "bytes_due": 1_500_000, "blocked_us": blocked_us}
    found = list(applications_gave_their_rate(Evidence(spec, {}, [report])))
    assert (found == []) is valid


def test_the_guest_reports_no_more_goodput_than_was_given(tmp_path: Path) -> None:
    """iperf2 counts time from the first byte, which comes a round trip after the start."""
    spec = planned(tmp_path, "rate: 4 Mbit/s")
    (flow,) = spec.flows
    (tmp_path / "iperf").mkdir()
    line = "0,10.0.0.1,5,10.0.0.2,5001,1,0.0-2.9,1499996,4137920"
    (tmp_path / f"iperf/{flow.name}.client.txt").write_text(f"{line.replace('1499996', '1500000')},30000\n")
    (tmp_path / f"iperf/{flow.name}.server.txt").write_text(line + "\n")
    (report,) = flow_results(spec, tmp_path)
    assert (report["goodput_bps"], report["bytes_due"], report["blocked_us"]) == (3_999_989, 1_500_000, 30_000)
