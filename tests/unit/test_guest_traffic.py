# SPDX-License-Identifier: Apache-2.0
"""iperf2: the algorithm of its receiver, and its reports as it printed them."""

from __future__ import annotations

from pathlib import Path

import pytest

from longfat.guest.traffic import parse_report, server_command
from longfat.spec.runspec import Flow

DATA = Path(__file__).parents[1] / "data"
ONE = (DATA / "iperf-2.1.8-one-stream.csv").read_text()
TWO = (DATA / "iperf-2.1.8-two-streams.csv").read_text()


@pytest.mark.parametrize(("cca", "named"), [("dctcp", True), ("scalable", False)])
def test_a_receiver_has_the_algorithm_only_where_its_sender_asks_for_ecn_in_the_syn(cca: str, named: bool) -> None:
    command = server_command(Flow("f1", "client1", "server", cca, 10_000_000), 5003)
    assert (f"-Z {cca}" in " ".join(command)) == named


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
