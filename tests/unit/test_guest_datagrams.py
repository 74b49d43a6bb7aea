# SPDX-License-Identifier: Apache-2.0
"""UDP traffic whose rate is a sine and the socket that counts it."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from longfat.guest import udp

ORDER: dict[str, Any] = {"mean_bps": 8_000_000, "swing_bps": 4_000_000, "period_us": 2_000_000}


def test_the_rate_is_a_sine_about_its_mean_or_constant() -> None:
    assert udp.due_bytes(ORDER, 2.0) == pytest.approx(2e6)
    rates = [8e3 * (udp.due_bytes(ORDER, at + 5e-4) - udp.due_bytes(ORDER, at - 5e-4)) for at in (0.5, 1.5)]
    assert rates == [pytest.approx(12e6, rel=1e-3), pytest.approx(4e6, rel=1e-3)]
    constant = {"mean_bps": 4_000_000, "swing_bps": 0, "period_us": None}
    assert [udp.due_bytes(constant, at) for at in (0.0, 0.5, 3.0)] == [0.0, 250_000.0, 1_500_000.0]


def test_datagrams_are_counted_by_a_socket_that_nobody_reads() -> None:
    with udp.open_receiver(0) as receiver, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(500):  # more than a receive buffer holds
            sender.sendto(bytes(1400), ("127.0.0.1", receiver.getsockname()[1]))
        assert udp.received_packets(receiver) == 500


def test_the_sender_sends_what_is_due_within_its_time() -> None:
    with udp.open_receiver(0) as receiver:
        port = receiver.getsockname()[1]
        began = time.monotonic()
        udp.send({**ORDER, "address": "127.0.0.1", "port": port, "packet_bytes": 1500, "duration_us": 100_000})
        assert time.monotonic() - began >= 0.1
        # A busy machine may take the last milliseconds from the sender, but gives it nothing.
        due = udp.due_bytes(ORDER, 0.1) / 1500
        assert due / 2 < udp.received_packets(receiver) <= due + 2
