# SPDX-License-Identifier: Apache-2.0
"""Web traffic: nginx at the sender, and the program of ``longfat.guest.users`` at the receiver.

The server's configuration and files, and the command lines of both programs. Starts nothing.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from longfat.guest import surge
from longfat.spec.runspec import Web

FIRST_PORT = 8001  # the server of the RunSpec's entry k listens on FIRST_PORT + k
LOOKS = 10  # times at which the congestion control of the server's sockets is read
SPARE_FILES = 256  # open files of a program apart from connections and served files
KEEPALIVE_S = 15  # life of an idle connection: the default of Apache up to 2.2
USERS = Path(__file__).with_name("users.py")
PYTHON = ("/usr/bin/python3", "-I", "-S")


def server_config(users: Web, port: int, files: Path, scratch: Path) -> str:
    """Return nginx's configuration: one worker with sendfile and persistent connections for the folder ``files``."""
    unused = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")  # folders made by nginx at its start
    return "\n".join(
        [
            "daemon off;",
            "user root;",
            "worker_processes 1;",
            # Its cache keeps every file open.
            f"worker_rlimit_nofile {2 * users.users + surge.FILES + SPARE_FILES};",
            f"pid {scratch}/{users.name}.pid;",
            f"events {{ use epoll; worker_connections {users.users + SPARE_FILES}; }}",
            "http {",
            *(f"{name}_temp_path {scratch}/nginx-{name};" for name in unused),
            "access_log off;",
            "sendfile on;",
            "tcp_nopush on;",
            f"keepalive_timeout {KEEPALIVE_S}s;",
            "keepalive_requests 1000000;",
            f"open_file_cache max={surge.FILES} inactive=1d;",
            "open_file_cache_valid 1d;",
            f"server {{ listen {port} backlog=4096 sndbuf=2m; root {files}; }}",
            "}",
            "",
        ]
    )


def server_command(config: Path) -> list[str]:
    """Return the command of nginx, with its messages on standard error."""
    return ["nginx", "-e", "stderr", "-p", str(config.parent), "-c", str(config)]


def users_command(order: Path) -> list[str]:
    """Return the command of the users' program with the file of its order."""
    return [*PYTHON, str(USERS), str(order)]


def users_order(users: Web, seed: int, address: str, port: int, origin_ns: int) -> dict[str, Any]:
    """Return the order of the users' program, in times of CLOCK_MONOTONIC; the measurement started at ``origin_ns``."""
    begin_ns = origin_ns + 1000 * users.start_us
    return {
        "web": dataclasses.asdict(users),
        "seed": seed,
        "server": f"{address}:{port}",
        "begin_ns": begin_ns,
        "end_ns": begin_ns + 1000 * users.duration_us,
        "open_files": users.users + SPARE_FILES,
    }


def looks_us(users: Web) -> Iterator[int]:
    """Return the times at which the server's sockets are read, evenly over the time of the users."""
    return (users.start_us + (2 * k + 1) * users.duration_us // (2 * LOOKS) for k in range(LOOKS))


def make_files(folder: Path) -> None:
    """Make the files of the model, named by their numbers and sparse, so that they need no memory."""
    folder.mkdir()
    for number, size in enumerate(surge.files("surge").sizes):  # the same for every model
        path = folder / str(number)
        path.touch()
        os.truncate(path, size)
