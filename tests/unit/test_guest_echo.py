# SPDX-License-Identifier: Apache-2.0
"""Echo requests of the guest's own: their bytes, their times, and the replies that belong to them."""

from __future__ import annotations

import os
import struct
import time

import pytest

from longfat.guest import echo

IP_HEADER = bytes([0x45]) + bytes(19)


def replied(message: bytes) -> bytes:
    """The IPv4 packet that answers a request."""
    return IP_HEADER + bytes([echo.ECHO_REPLY]) + message[1:]


@pytest.mark.parametrize("number", [0, 1, 65_535, 65_536, 3_000_000_019])
def test_a_request_has_the_length_of_ping_s_and_a_right_checksum(number: int) -> None:
    message = echo.request(number)
    total = sum(struct.unpack("!32H", message))
    assert (total >> 16) + (total & 0xFFFF) == 0xFFFF
    assert len(message) == 64


@pytest.mark.parametrize("number", [0, 65_535, 65_536, 3_000_000_019])
def test_a_reply_names_its_request_after_the_sequence_number_has_wrapped_too(number: int) -> None:
    assert echo.reply_number(replied(echo.request(number))) == number
    options = bytes([0x47]) + bytes(27)
    assert echo.reply_number(options + replied(echo.request(number))[20:]) == number


def test_what_answers_no_request_of_the_probe_has_no_number() -> None:
    message = echo.request(7)
    foreign = message[:4] + b"\0\1" + message[6:]
    for packet in (IP_HEADER + message, replied(foreign), replied(message)[:30]):
        assert echo.reply_number(packet) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="raw sockets need root")
@pytest.mark.parametrize(("address", "answered"), [("127.0.0.1", True), ("127.0.0.2", True), ("192.0.2.77", False)])
def test_the_program_prints_a_row_for_each_request_whether_it_was_answered_or_not(
    address: str, answered: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    when = {"interval_us": 5_000, "origin_ns": time.monotonic_ns(), "end_us": 50_000, "linger_ns": 1_000_000}
    echo.probe({"address": address, **when})
    header, *lines = capsys.readouterr().out.splitlines()
    assert header == "t_us,rtt_us"
    assert 1 <= len(lines) <= 10  # a busy machine lets some times pass
    times, trips = zip(*(line.split(",") for line in lines), strict=True)
    assert sorted(set(map(int, times))) == list(map(int, times))
    assert all(0 < float(trip) < 1e6 for trip in trips) if answered else set(trips) == {""}
