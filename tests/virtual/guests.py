# SPDX-License-Identifier: Apache-2.0
"""Boots guests for the tests: a program of the test's own, or a RunSpec of the sandia-2003 kind.

Owns the way of a test's Python program into a guest. Must not assert anything.
"""

from __future__ import annotations

import base64
import functools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longfat.backends.virtual import LAB_PATH, VirtualBackend, console_text, open_virtual, scratch_folder
from longfat.runspec import Egress, Flow, Interface, Link, Node, Probes, Queue, RunSpec

MEMORY_BYTES = 256 << 20
GUEST_PROGRAM = "program.py"

# What the guest's first process does, before and after the test's own program: mounts, and power off.
START = f"""
import sys
sys.path[:] = ["/code", "/usr/lib/python3.11", "/usr/lib/python3.11/lib-dynload"]
from longfat.lab import guest
guest.execute = lambda: exec(open("/lab/{GUEST_PROGRAM}").read(), {{}})
guest.main(sys.argv[1])
"""


@functools.cache
def virtual() -> VirtualBackend:
    """The backend, with its kernel and image built now if they are not in the cache folder."""
    return open_virtual()


@contextmanager
def lab_folder(backend: VirtualBackend, program: str, *files: Path) -> Iterator[Path]:
    """A folder that a guest can see, with ``program`` and copies of ``files``."""
    with tempfile.TemporaryDirectory(prefix="test-", dir=scratch_folder(backend.jail)) as name:
        lab = Path(name)
        (lab / "raw").mkdir()
        (lab / GUEST_PROGRAM).write_text(program)
        for path in files:
            shutil.copy(path, lab / path.name)
        yield lab


def arguments() -> list[str]:
    """What the guest's Python is started with to run the program.

    The kernel splits its command line at spaces: the text travels without any.
    """
    start = base64.b64encode(START.encode()).decode()
    return ["-c", f"exec(__import__('base64').b64decode('{start}'))", LAB_PATH]


def boot(backend: VirtualBackend, program: str, *files: Path) -> str:
    """Boot a guest that runs ``program`` as root, with ``files`` in /lab; what its console showed."""
    with lab_folder(backend, program, *files) as lab:
        backend.boot(lab, MEMORY_BYTES, 1, arguments())
        return console_text(lab / "console.log")


def flow_spec(
    backend: VirtualBackend,
    *,
    seed: int = 1,
    mtu_bytes: int = 9000,
    window_bytes: int = 32 << 20,
    duration_us: int = 1_000_000,
    queue_packets: int = 100,
    sender_sysctls: dict[str, str] | None = None,
    receiver_sysctls: dict[str, str] | None = None,
    capture: bool = True,
) -> RunSpec:
    """One flow at 1 Gbit/s through a router with 15 ms each way."""
    limits = {"net.core.rmem_max": str(64 << 20), "net.core.wmem_max": str(64 << 20)}
    shaped = Egress(rate_bps=1_000_000_000, queue=Queue(limit_packets=queue_packets))
    delayed = Egress(delay_us=15_000)
    return RunSpec(
        nodes=(
            Node("client1", "sender", {**limits, **(sender_sysctls or {})}),
            Node("delay", "router", {"net.ipv4.ip_forward": "1"}),
            Node("server", "receiver", {**limits, "net.ipv4.tcp_recv_fill": "1", **(receiver_sysctls or {})}),
        ),
        links=(
            Link(Interface("client1", shaped), Interface("delay", delayed), mtu_bytes),
            Link(Interface("delay", delayed), Interface("server", shaped), mtu_bytes),
        ),
        flows=(Flow("flow1", "client1", "server", "reno", duration_us, window_bytes),),
        probes=Probes(capture_flows=("flow1",) if capture else ()),
        seed=seed,
        pins=backend.pins(),
    )
