# SPDX-License-Identifier: Apache-2.0
"""Stands in for QEMU: keeps its promises as a process and to the network, and runs nothing.

It writes the PID file, goes into the background, greets on the forwarded port as SSH does and makes the sockets of the
links. Its first argument is a folder: with a file NAME.silent there, the machine NAME starts without greeting.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from pathlib import Path


def refuse(reason: str) -> None:
    sys.stderr.write(f"qemu-system-x86_64: {reason}\n")
    sys.exit(1)


def option(arguments: list[str], name: str) -> str:
    return arguments[arguments.index(name) + 1]


def listen(arguments: list[str]) -> socket.socket:
    [port] = re.findall(r"hostfwd=tcp:127\.0\.0\.1:(\d+)-:22", " ".join(arguments))
    door = socket.socket()
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind(("127.0.0.1", int(port)))
    except OSError:
        refuse(f"-netdev user: Could not set up host forwarding rule 'tcp:127.0.0.1:{port}-:22'")
    door.listen()
    return door


def make_links(arguments: list[str]) -> list[socket.socket]:
    ends = []
    for path in re.findall(r"local\.path=([^, ]+)", " ".join(arguments)):
        Path(path).unlink(missing_ok=True)
        end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        end.bind(path)
        ends.append(end)
    return ends


def main() -> None:
    behaviour, arguments = Path(sys.argv[1]), sys.argv[2:]
    name = option(arguments, "-name")
    for drive in re.findall(r"file=([^, ]+),format=raw", " ".join(arguments)):
        if not Path(drive).exists():
            refuse(f"Could not open '{drive}'")
    pid_file = Path(option(arguments, "-pidfile"))
    door = listen(arguments)
    links = make_links(arguments)
    [console] = re.findall(r"path=([^, ]+\.console)", " ".join(arguments))
    Path(console).write_text("booting\n")
    if os.fork() > 0:
        os._exit(0)
    os.setsid()
    pid_file.write_text(f"{os.getpid()}\n")
    for number in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
    while links:
        visitor, _ = door.accept()
        with visitor:
            if not (behaviour / f"{name}.silent").exists():
                visitor.sendall(b"SSH-2.0-stub\r\n")


main()
