# SPDX-License-Identifier: Apache-2.0
"""Takes in the datagrams that come to PORT, until it is ended."""

import socket
import sys

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
    receiver.bind(("", int(sys.argv[1])))
    while True:
        receiver.recv(2048)
