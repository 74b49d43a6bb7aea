# SPDX-License-Identifier: Apache-2.0
"""iperf2: its command lines, and its reports as it printed them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from longfat.guest.traffic import (
    BLOCK_BYTES,
    block_bytes,
    client_command,
    client_status,
    parse_report,
    parse_transfers,
    server_command,
)
from longfat.runspec import Flow, Probes, RunSpec

DATA = Path(__file__).parents[1] / "data"
ONE = (DATA / "iperf-2.1.8-one-stream.csv").read_text()
TWO = (DATA / "iperf-2.1.8-two-streams.csv").read_text()
FLOW = Flow("f1", "client1", "server", "scalable", 10_000_000, 16 << 20, streams=2)


def test_the_sender_is_told_address_port_duration_algorithm_streams_and_window() -> None:
    assert " ".join(client_command(FLOW, "10.0.1.2", 5003)) == (
        "iperf -c 10.0.1.2 -p 5003 -l 1048576 -Z scalable -y C -w 16777216 -t 10 -P 2"
    )


def test_the_receiver_ends_after_as_many_connections_as_the_flow_has_streams() -> None:
    assert " ".join(server_command(FLOW, 5003)) == "iperf -s -p 5003 -l 1048576 -y C -P 2 -w 16777216"


@pytest.mark.parametrize(
    ("flows", "block"), [(0, BLOCK_BYTES), (32, BLOCK_BYTES), (64, BLOCK_BYTES // 2), (250, 131072)]
)
def test_blocks_of_many_connections_are_smaller(flows: int, block: int) -> None:
    named = tuple(dataclasses.replace(FLOW, name=f"f{number}") for number in range(flows))
    assert block_bytes(RunSpec((), (), named, Probes(), 1)) == block
    assert f"-l {block} " in " ".join(client_command(FLOW, "10.0.1.2", 5003, block))


def test_a_listener_has_the_algorithm_that_needs_ecn_at_both_ends() -> None:
    assert "-Z dctcp" in " ".join(server_command(dataclasses.replace(FLOW, cca="dctcp"), 5003))


@pytest.mark.parametrize(("duration_us", "text"), [(10_000_000, "10"), (500_000, "0.5"), (1_234_567, "1.23457")])
def test_a_duration_is_given_in_seconds_without_trailing_zeros(duration_us: int, text: str) -> None:
    command = client_command(dataclasses.replace(FLOW, duration_us=duration_us), "10.0.1.2", 5001)
    assert command[command.index("-t") + 1] == text


def test_a_sending_window_of_its_own_takes_the_place_of_the_window_at_the_sender_only() -> None:
    flow = dataclasses.replace(FLOW, send_window_bytes=65_536)
    assert "-w 65536" in " ".join(client_command(flow, "10.0.1.2", 5001))
    assert "-w 16777216" in " ".join(server_command(flow, 5001))


def test_without_a_window_auto_tuning_stays_on_at_both_ends() -> None:
    flow = dataclasses.replace(FLOW, window_bytes=None)
    assert "-w" not in client_command(flow, "10.0.1.2", 5001)
    assert "-w" not in server_command(flow, 5001)


def test_transfers_follow_each_other_in_every_stream_until_the_time_is_over() -> None:
    flow = dataclasses.replace(FLOW, transfer_bytes=2_000_000_000)
    command = client_command(flow, "10.0.1.2", 5003)
    assert command[:4] == ["timeout", "10", "sh", "-c"]
    assert command[4] == 'for stream in 0 1; do while "$@"; do :; done & done; wait'
    assert " ".join(command[6:]).endswith("-Z scalable -y C -w 16777216 -n 2000000000")
    assert "-P" not in command
    assert "-P" not in server_command(flow, 5003)


def test_only_flows_of_transfers_end_by_the_clock() -> None:
    flow = dataclasses.replace(FLOW, transfer_bytes=1)
    assert (client_status(FLOW), client_status(flow)) == (0, 124)


def test_each_connection_of_a_report_is_a_transfer() -> None:
    sums = "19700101000000,10.0.0.1,0,10.0.1.2,5001,-1,0.0-3.0,9,8\n"
    assert [amount for _, amount in parse_transfers(TWO + sums, 5001)] == [259_552, 268_500]
    assert parse_transfers("", 5001) == []
    here = "19700101000000,10.0.0.1,40000,10.0.1.2,5001,3,0.0-1.0,7,56\n"
    there = "19700101000000,10.0.1.2,5001,10.0.0.1,40000,3,0.0-1.0,7,56\n"
    assert parse_transfers(here + there, 5001) == [(40000, 7)] * 2


def test_the_report_of_one_stream_gives_its_bytes_and_rate() -> None:
    assert parse_report(ONE, 1) == (15_728_700, 41_711_354)


def test_two_streams_have_the_rate_of_all_bytes_until_the_last_stream_ends() -> None:
    both = 259_552 + 268_500
    longest_s = 8 * 259_552 / 17_178_208
    assert parse_report(TWO, 2) == (both, round(8 * both / longest_s))


def test_a_stream_that_received_nothing_has_no_end() -> None:
    nothing = "19700101000000,10.0.0.1,1,10.0.1.2,5001,3,0.0-0.1,0,0\n"
    assert parse_report(nothing, 1) == (0, 0)


def test_a_sum_that_iperf_adds_itself_is_not_counted_again() -> None:
    total = "19700101000000,10.0.0.1,0,10.0.1.2,5001,-1,0.0-0.1,528052,34992255\n"
    assert parse_report(TWO + total, 2) == parse_report(TWO, 2)


def test_a_message_among_the_reports_is_passed_over() -> None:
    assert parse_report("WARN: window size, of all, is, too small, a, b, c, d\n" + ONE, 1) == parse_report(ONE, 1)


@pytest.mark.parametrize(("text", "streams", "found"), [(ONE, 2, 1), ("", 1, 0), (TWO, 1, 2)])
def test_a_missing_or_surplus_report_is_an_error_with_the_numbers(text: str, streams: int, found: int) -> None:
    with pytest.raises(ValueError, match=f"iperf2 reported {found} of {streams} streams"):
        parse_report(text, streams)


def test_the_error_shows_what_iperf_said_instead() -> None:
    with pytest.raises(ValueError, match="0 of 1 streams: 'connect failed: Connection refused'"):
        parse_report("connect failed: Connection refused\n", 1)


def test_a_report_cut_in_the_middle_of_a_line_is_an_error() -> None:
    with pytest.raises(ValueError, match="1 of 2 streams"):
        parse_report(TWO[: len(TWO) - 30], 2)
