#!/usr/bin/python3 -I
# SPDX-License-Identifier: Apache-2.0
"""First process of the virtual machine that tests the x86-64 package: answers /question.json on its first disk.

Owns what is asked of the running kernel. Must not judge the answers: the test does, on the host. Needs Python's
standard library, iproute2 and nothing else; the time is the machine's own, and everything is slow in emulation.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import threading
import traceback
from pathlib import Path
from typing import Any

RB_POWER_OFF = 0x4321FEDC  # linux/reboot.h
CLONE_NEWNET = 0x40000000  # linux/sched.h
FINIT_MODULE = 313  # asm/unistd_64.h
TOTAL_RETRANS_OFFSET = 100  # tcpi_total_retrans in struct tcp_info, linux/tcp.h
ANSWER_DISK = "/dev/vda"
MOUNTS = (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp"), ("tmpfs", "/run"))
FLOW_PATIENCE_S = 30
PORT = 5001

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Mount, answer, write the answer to the disk, power off whatever happens."""
    try:
        for kind, target in MOUNTS:
            _checked(_libc.mount(kind.encode(), target.encode(), kind.encode(), 0, b""))
        os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL="C")
        answer = answer_to(json.loads(Path("/question.json").read_text()))
    except BaseException:
        answer = {"error": traceback.format_exc()}
    try:
        with open(ANSWER_DISK, "r+b") as disk:
            disk.write(json.dumps(answer).encode())
            disk.flush()
            os.fsync(disk.fileno())
    finally:
        _libc.reboot(RB_POWER_OFF)


def answer_to(question: dict[str, Any]) -> dict[str, Any]:
    """What the kernel is, has and does; ``question`` names the algorithms."""
    return {
        "release": os.uname().release,
        "disks": sorted(os.listdir("/sys/block")),
        "built_in_cards": cards(),
        "modules": load_modules(Path("/lib/modules") / os.uname().release),
        "cards": cards(),
        "flows": flows(question["ccas"], question["flow_bytes"]),
    }


def cards() -> list[str]:
    """The drivers of the network cards."""
    return sorted(path.resolve().name for path in Path("/sys/class/net").glob("*/device/driver"))


def load_modules(folder: Path) -> dict[str, str | None]:
    """Load every module in the order that depmod found; what the kernel said of each, None if it took it."""
    lines = (folder / "modules.dep").read_text().splitlines()
    needs = {name: rest.split() for name, rest in (line.split(":") for line in lines)}
    said: dict[str, str | None] = {}

    def load(name: str) -> None:
        for other in reversed(needs[name]):
            if other not in said:
                load(other)
        with (folder / name).open("rb") as file:
            failed = _libc.syscall(FINIT_MODULE, file.fileno(), b"", 0)
        said[name] = os.strerror(ctypes.get_errno()) if failed else None

    for name in needs:
        if name not in said:
            load(name)
    return said


def flows(ccas: list[str], size: int) -> dict[str, Any]:
    """One flow of ``size`` bytes under each algorithm, between two namespaces: 20 Mbit/s, 10 ms, 3 % loss."""
    for command in (
        "ip netns add a",
        "ip netns add b",
        "ip link add a0 netns a type veth peer name b0 netns b",
        "ip -n a addr add 10.0.0.1/24 dev a0",
        "ip -n b addr add 10.0.0.2/24 dev b0",
        "ip -n a link set a0 up gso_max_segs 1",
        "ip -n b link set b0 up",
        "tc -n a qdisc add dev a0 root netem delay 5ms rate 20mbit loss 3%",
        "tc -n b qdisc add dev b0 root netem delay 5ms limit 1000",
    ):
        done = subprocess.run(command.split(), capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stderr}")
    answers = {}
    for cca in ccas:
        try:
            answers[cca] = flow(cca, size)
        except OSError as error:
            answers[cca] = {"error": str(error)}
    return answers


def flow(cca: str, size: int) -> dict[str, Any]:
    """Send ``size`` bytes under ``cca``: what arrived, the algorithm at the flow's end, retransmissions."""
    received = 0

    def receive(listener: socket.socket) -> None:
        nonlocal received
        connection, _ = listener.accept()
        connection.settimeout(FLOW_PATIENCE_S)
        while part := connection.recv(1 << 16):
            received += len(part)
        connection.close()

    with socket_in("b") as listener, socket_in("a") as sender:
        for end in (listener, sender):  # both: dctcp is plain reno when the listener is not dctcp as well
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cca.encode())
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("10.0.0.2", PORT))
        listener.listen()
        receiver = threading.Thread(target=receive, args=(listener,), daemon=True)
        receiver.start()
        sender.connect(("10.0.0.2", PORT))
        sender.sendall(bytes(size))
        sender.shutdown(socket.SHUT_WR)
        receiver.join(FLOW_PATIENCE_S)
        used = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
        info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TOTAL_RETRANS_OFFSET + 4)
        return {
            "received": received,
            "cca": used,
            "retransmissions": int.from_bytes(info[TOTAL_RETRANS_OFFSET:], "little"),
        }


def socket_in(namespace: str) -> socket.socket:
    """A TCP socket of a network namespace; it stays there when this thread moves on."""
    with open(f"/run/netns/{namespace}") as file:
        _checked(_libc.setns(file.fileno(), CLONE_NEWNET))
    made = socket.socket()
    made.settimeout(FLOW_PATIENCE_S)
    return made


def _checked(status: int) -> None:
    if status:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


if __name__ == "__main__":
    main()
