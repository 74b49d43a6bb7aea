# SPDX-License-Identifier: Apache-2.0
"""Boots guests for the tests: a program of the test's own, or one flow over a long fat path.

LONGFAT_TEST_KERNEL names the kernel of all guests. Owns the way of a test's Python program into a guest and back.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from longfat.backends.guest_process import console_text, scratch_folder
from longfat.backends.virtual import VirtualBackend, open_virtual
from longfat.spec.runspec import Egress, Flow, Interface, Link, Node, Probes, Queue, RunSpec
from longfat.study.catalog.kernels import DEFAULT_KERNEL
from longfat.system.errors import RigError

MEMORY_BYTES = 256 << 20
KERNEL = os.environ.get("LONGFAT_TEST_KERNEL", DEFAULT_KERNEL)

# The guest's first process does its mounts, runs the test's program, keeps what it calls ``answer``, powers off.
START = """
import json, sys
sys.path[:] = ["/code", "/usr/lib/python3.11", "/usr/lib/python3.11/lib-dynload"]
from longfat.guest import init
def execute():
    names = {}
    exec(open("/task/program.py").read(), names)
    open("/task/raw/answer.json", "w").write(json.dumps(names["answer"]))
init.execute = execute
init.main()
"""

# Receives datagrams at the port of its argument; a program of a study.
RECEIVE = """#!/usr/bin/env python3
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
    receiver.bind(("", int(sys.argv[1])))
    while True:
        receiver.recv(65536)
"""


@functools.cache
def virtual(kernel: str = KERNEL) -> VirtualBackend:
    """The backend, with its kernel and image built now if they are not in the cache folder.

    The calling test is skipped where the source of a kernel that is not the default one cannot be had.
    """
    try:
        return open_virtual(kernels=(kernel,))
    except RigError as error:
        if kernel != DEFAULT_KERNEL and "no kernel source" in error.message and "CI" not in os.environ:
            pytest.skip(error.message)
        raise


@contextmanager
def task_folder(program: str, *files: Path) -> Iterator[Path]:
    """A folder for one guest, with ``program`` and copies of ``files``; the guest calls it /task."""
    with tempfile.TemporaryDirectory(prefix="test-", dir=scratch_folder(virtual().jail)) as name:
        task = Path(name)
        (task / "raw").mkdir()
        (task / "program.py").write_text(program)
        for path in files:
            shutil.copy(path, task / path.name)
        yield task


def boot(task: Path, backend: VirtualBackend | None = None) -> None:
    """Boot a guest that runs the program in ``task``. The kernel splits its command line at spaces: send it none."""
    start = base64.b64encode(START.encode()).decode()
    program = ["-c", f"exec(__import__('base64').b64decode('{start}'))"]
    (backend or virtual()).boot(task, MEMORY_BYTES, 1, program)


def ask(program: str, *files: Path) -> Any:
    """What ``program`` leaves in its variable ``answer`` when a guest runs it with ``files`` in /task.

    Raises RuntimeError with the guest's console when there is no answer.
    """
    with task_folder(program, *files) as task:
        boot(task)
        answer = task / "raw" / "answer.json"
        if not answer.exists():
            raise RuntimeError(console_text(task / "console.log"))
        return json.loads(answer.read_text())


def processes_in(task: Path) -> list[int]:
    """Ids of the processes whose working folder is ``task``: a guest and all that it has started."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd") == str(task):
                found.append(int(entry.name))
        except OSError:
            continue  # it has ended, or it is another user's
    return found


def one_flow(
    *,
    seed: int = 1,
    duration_us: int = 1_000_000,
    mtu_bytes: int = 9000,
    sender: dict[str, str] | None = None,
    receiver: dict[str, str] | None = None,
) -> RunSpec:
    """One captured flow at 1 Gbit/s through a router with 15 ms each way, a queue of 100 packets, 32 MiB windows.

    ``sender`` and ``receiver`` hold further sysctls.
    """
    limits = {"net.core.rmem_max": str(64 << 20), "net.core.wmem_max": str(64 << 20)}
    sysctls = limits | (sender or {}), limits | {"net.ipv4.tcp_recv_fill": "1"} | (receiver or {})
    flow = Flow("flow1", "client1", "server", "reno", duration_us, 32 << 20)
    probes = Probes(capture=("flow1",))
    return delay_path(1_000_000_000, 30_000, 100, mtu_bytes, sysctls, flows=(flow,), probes=probes, seed=seed)


def delay_path(
    rate_bps: int,
    rtt_us: int,
    limit_packets: int,
    mtu_bytes: int = 1500,
    sysctls: tuple[dict[str, str], dict[str, str]] = ({}, {}),
    **parts: Any,
) -> RunSpec:
    """Return a run over client1, delay and server; ``parts`` are further fields of the RunSpec, such as its traffic."""
    shaped, delayed = Egress(rate_bps, queue=Queue(limit_packets=limit_packets)), Egress(delay_us=rtt_us // 2)
    return RunSpec(
        nodes=(
            Node("client1", "sender", sysctls[0]),
            Node("delay", "router", {"net.ipv4.ip_forward": "1"}),
            Node("server", "receiver", sysctls[1]),
        ),
        links=(
            Link(Interface("client1", shaped), Interface("delay", delayed), mtu_bytes),
            Link(Interface("delay", delayed), Interface("server", shaped), mtu_bytes),
        ),
        **{"flows": (), "probes": Probes(), "seed": 1, "pins": virtual().pins(), **parts},
    )


def run(spec: RunSpec, folder: Path) -> Path:
    """Execute ``spec`` in a guest; the folder with its raw files."""
    folder.mkdir()
    virtual().run(spec, folder)
    return folder
