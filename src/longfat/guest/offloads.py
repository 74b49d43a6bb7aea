# SPDX-License-Identifier: Apache-2.0
"""Segmentation and aggregation offloads of an interface by the ethtool ioctl (linux/ethtool.h)."""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from collections.abc import Collection

SIOCETHTOOL = 0x8946
COMMANDS = {"tso": (0x1E, 0x1F), "gso": (0x23, 0x24), "gro": (0x2B, 0x2C)}  # get and set


def set_offloads(interface: str, wanted: Collection[str]) -> None:
    """Turn the offloads in ``wanted`` on and the others off, in the current network namespace.

    One that a card does not have is off. Raises OSError when the driver refuses.
    """
    with _channel() as channel:
        for name, (get, put) in COMMANDS.items():
            if bool(_ethtool(channel, interface, get, 0)) != (name in wanted):
                _ethtool(channel, interface, put, int(name in wanted))


def offloads_on(interface: str) -> list[str]:
    """Names of the offloads that are on, in the current network namespace."""
    with _channel() as channel:
        return [name for name, (get, _put) in COMMANDS.items() if _ethtool(channel, interface, get, 0)]


def _channel() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def _ethtool(channel: socket.socket, interface: str, command: int, value: int) -> int:
    data = array.array("I", [command, value])
    request = struct.pack("16sP", interface.encode(), data.buffer_info()[0])
    fcntl.ioctl(channel, SIOCETHTOOL, request.ljust(40, b"\0"))
    return data[1]
