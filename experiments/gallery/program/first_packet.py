# SPDX-License-Identifier: Apache-2.0
"""Name the first packet that differs in each capture of two results folders: first_packet.py LAST NOW."""

import itertools
import struct
import sys
from pathlib import Path


def packets(path):
    """Yield the time in seconds and the bytes of each packet of a pcap file."""
    data, at = path.read_bytes(), 24
    fraction = 1e9 if data[:4] == b"\x4d\x3c\xb2\xa1" else 1e6
    while at < len(data):
        seconds, parts, size, _ = struct.unpack_from("<4I", data, at)
        yield seconds + parts / fraction, data[at + 16 : at + 16 + size]
        at += 16 + size


def say(line):
    """Print a line."""
    sys.stdout.write(line + "\n")


last, now = map(Path, sys.argv[1:])
for new in sorted(now.glob("raw/*/captures/*.pcap")):
    name = new.parts[-3].rpartition(".")[0]  # without the digits of the run's id
    for old in last.glob(f"raw/{name}.*/captures/{new.name}"):
        start = next(packets(new), (0.0, b""))[0]
        for number, (was, found) in enumerate(itertools.zip_longest(packets(old), packets(new)), 1):
            if was != found:
                time = f"at {found[0] - start:.6f} s" if found else "which no longer exists"
                say(f"{name}, {new.name}: the first packet that differs is number {number}, {time}")
                break
        else:
            say(f"{name}, {new.name}: all packets are equal")
