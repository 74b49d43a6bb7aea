# SPDX-License-Identifier: Apache-2.0
"""iperf2: its command lines, and its reports as it printed them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from longfat.guest.traffic import (
    client_command,
    client_status,
    parse_report,
    server_command,
)
from longfat.spec.runspec import Flow

DATA = Path(__file__).parents[1] / "data"
ONE = (DATA / "iperf-2.1.8-one-stream.csv").read_text()
TWO = (DATA / "iperf-2.1.8-two-streams.csv").read_text()
FLOW = Flow("f1", "client1", "server", "scalable", 10_000_000, 16 << 20, streams=2)


def changed(**fields: object) -> Flow:
    return dataclasses.replace(FLOW, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("flow", "sender", "receiver"),
    [
        (FLOW, "-Z scalable -y C -w 16777216 -t 10 -P 2", "-y C -P 2 -w 16777216"),
        (changed(duration_us=500_000), "-Z scalable -y C -w 16777216 -t 0.5 -P 2", "-y C -P 2 -w 16777216"),
        (changed(send_window_bytes=65_536), "-Z scalable -y C -w 65536 -t 10 -P 2", "-y C -P 2 -w 16777216"),
        (changed(window_bytes=None), "-Z scalable -y C -t 10 -P 2", "-y C -P 2"),
        (changed(cca="dctcp"), "-Z dctcp -y C -w 16777216 -t 10 -P 2", "-y C -P 2 -Z dctcp -w 16777216"),
    ],
)
def test_both_ends_of_a_flow_have_their_command_lines(flow: Flow, sender: str, receiver: str) -> None:
    assert " ".join(client_command(flow, "10.0.1.2", 5003)) == f"iperf -c 10.0.1.2 -p 5003 -l 1048576 {sender}"
    assert " ".join(server_command(flow, 5003)) == f"iperf -s -p 5003 -l 1048576 {receiver}"


def test_transfers_follow_each_other_in_every_stream_until_their_time_ends() -> None:
    flow = changed(transfer_bytes=2_000_000_000)
    command = client_command(flow, "10.0.1.2", 5003)
    assert command[:4] == ["timeout", "10", "sh", "-c"]
    assert command[4] == 'for stream in 0 1; do while "$@"; do :; done & done; wait'
    assert " ".join(command[6:]).endswith("-Z scalable -y C -w 16777216 -n 2000000000")
    assert "-P" not in [*command, *server_command(flow, 5003)]
    assert (client_status(FLOW), client_status(flow)) == (0, 124)


def test_a_report_has_the_bytes_of_all_streams_and_their_rate_until_the_last_stream_ends() -> None:
    assert parse_report(ONE, 1) == (15_728_700, 41_711_354)
    both, longest_s = 259_552 + 268_500, 8 * 259_552 / 17_178_208
    assert parse_report(TWO, 2) == (both, round(8 * both / longest_s))
    assert parse_report("19700101000000,10.0.0.1,1,10.0.1.2,5001,3,0.0-0.1,0,0\n", 1) == (0, 0)


@pytest.mark.parametrize(
    ("text", "streams", "found"),
    [(ONE, 2, 1), ("", 1, 0), (TWO, 1, 2), (TWO[:-30], 2, 1), ("connect failed: Connection refused\n", 1, 0)],
)
def test_a_missing_or_surplus_report_is_an_error_with_the_output(text: str, streams: int, found: int) -> None:
    with pytest.raises(ValueError, match=f"{found} of {streams} streams: .*{text.strip()[-20:]}"):
        parse_report(text, streams)
