# SPDX-License-Identifier: Apache-2.0
"""A worker on each host that ssh(1) reaches: started over its connection, and ended with it.

All traffic passes through the SSH connection, so hosts and this machine need no other connection.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from longfat.execute.cluster.places import Host
from longfat.system.errors import RigError, StudyError
from longfat.system.events import Event, EventSink, Kind, Level
from longfat.system.parent import end_with_parent
from longfat.system.processes import limit_files

LOOPBACK = "127.0.0.1"
SSH = "ssh -o BatchMode=yes -o ConnectTimeout=20"
PATIENCE_S = 15.0
TAIL_BYTES = 2000
MOST_BYTES = 64 << 20  # of the messages of a host

# Runs on a host. The session's key comes on standard input, hidden from other users, and is removed with the worker.
_SCRIPT = """\
umask 077
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cat >"$folder/session.pem"
NODE_NAME={host} {python} {words} --local-directory "$folder" --name {host}
"""


@dataclass(frozen=True)
class Tunnel:
    """Ports of the loopback addresses: of the ``scheduler`` and the ``worker`` there, and of the worker here."""

    scheduler: int
    worker: int
    contact: int


class Hosts:
    """Context manager of the connections to hosts with one worker each; they end after the session's scheduler."""

    def __init__(self, events: EventSink) -> None:
        self._events = events
        self._processes: dict[str, tuple[subprocess.Popen[bytes], IO[bytes]]] = {}

    def start(
        self, hosts: Sequence[Host], scheduler: int, words: Callable[[Tunnel, str], Sequence[str]], pem: str
    ) -> None:
        """Start a worker on each host for the ``scheduler`` at a port of this machine.

        ``words`` returns the worker's words for a tunnel and a file of the session's key.
        """
        for host, tunnel in zip(hosts, _tunnels(len(hosts)), strict=True):
            forward = ["-R", f"{LOOPBACK}:{tunnel.scheduler}:{LOOPBACK}:{scheduler}"]
            forward += ["-L", f"{LOOPBACK}:{tunnel.contact}:{LOOPBACK}:{tunnel.worker}"]
            self._processes[host.name] = _login(host, forward, words(tunnel, '"$folder/session.pem"'), pem)

    def check(self) -> None:
        """Report hosts whose worker has ended. Raises RigError if none is left."""
        for name, (process, output) in [*self._processes.items()]:
            if process.poll() is None:
                continue
            del self._processes[name]
            output.seek(max(0, output.seek(0, os.SEEK_END) - TAIL_BYTES))
            text = output.read(TAIL_BYTES).decode(errors="replace").strip()
            output.close()
            message = f"the worker on {name} ended with status {process.returncode}\n{text}".strip()
            if not self._processes:
                raise RigError(f"no host is left: {message}", where=name)
            self._events(Event(Kind.WORKER_LOST, message, Level.WARNING, {"host": name}))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for process, output in self._processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE_S)  # its worker has lost the scheduler
            process.kill()
            process.wait()
            output.close()


def _client() -> list[str]:
    """Return the words before the host's name. Raises StudyError for an open quotation mark."""
    given = os.environ.get("LONGFAT_SSH", SSH)
    try:
        return shlex.split(given)
    except ValueError as error:
        raise StudyError(f"{given!r} is not a command: {error}", where="LONGFAT_SSH") from error


def _begin() -> None:
    end_with_parent()
    limit_files(MOST_BYTES)


def _tunnels(count: int) -> list[Tunnel]:
    """Return tunnels with ports that are free here, and so most likely on the host."""
    with ExitStack() as doors:
        ports = []
        for _ in range(3 * count):
            door = doors.enter_context(socket.socket())
            door.bind((LOOPBACK, 0))
            ports.append(int(door.getsockname()[1]))
    return [Tunnel(*ports[first : first + 3]) for first in range(0, 3 * count, 3)]


def _login(
    host: Host, forward: Sequence[str], words: Sequence[str], pem: str
) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    output = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the connection
    line = " ".join(word if "$" in word else shlex.quote(word) for word in words)
    python = shlex.quote(str(Path(host.checkout) / ".venv/bin/python"))
    script = _SCRIPT.format(host=shlex.quote(host.name), python=python, words=line)
    login = host.login or (*_client(), host.name)
    forward = ["-o", "ExitOnForwardFailure=yes", "-o", "ControlPath=none", *forward]
    command = [*login[:-1], *forward, login[-1], f"sh -c {shlex.quote(script)}"]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        preexec_fn=_begin,
        start_new_session=True,
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as pipe:  # ``check`` reports ssh's message
        pipe.write(pem.encode())
    return process, output
