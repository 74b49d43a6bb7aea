# SPDX-License-Identifier: Apache-2.0
"""Sends datagrams of 1200 bytes to ADDRESS PORT for SECONDS at a RATE in Mbit/s, whatever becomes of them."""

import socket
import sys
import time

address, port, seconds, rate = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
begin, sent, payload = time.monotonic(), 0, bytes(1200)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    while (passed := time.monotonic() - begin) < seconds:
        while 8 * sent < 1e6 * rate * passed:
            sent += sender.sendto(payload, (address, port))
        time.sleep(0.001)
