# SPDX-License-Identifier: Apache-2.0
"""SSH connections to the agents on the hosts of a lab: their processes and their messages. Independent of runs."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from longfat.backends.testbed.connect.answers import HostFailed, checked, read_message
from longfat.backends.testbed.folder import KEY, KNOWN_HOSTS
from longfat.backends.testbed.inventory import Host
from longfat.system.parent import end_with_parent
from longfat.system.processes import limit_files

BEAT_S = 5.0  # interval of the messages that show a host that this machine is alive
CONNECT_S = 20
GREETING_S = 60.0  # an emulated machine takes seconds to start Python
ANSWER_S = 120.0
ARCHIVE_S = 1800.0  # to pack tens of gigabytes of captures
CHUNK = 1 << 16
MAX_LINE = 8 << 20  # settings of a few hundred nodes
SLOWEST_BYTES_PER_S = 20_000
TAIL_LINES = 6
EXCHANGES = 8  # for the offset of a clock

# Reads the agent's code, whose length is on the first line, and becomes the agent. Only root can read the folder.
START = """\
import os, shutil, sys, tempfile
from pathlib import Path
os.makedirs("/var/lib/longfat", 0o700, exist_ok=True)
folder = Path(tempfile.mkdtemp(prefix="run-", dir="/var/lib/longfat"))
source = open(0, "rb", closefd=False)
try:
    (folder / "code.zip").write_bytes(source.read(int(source.readline())))
except BaseException:
    shutil.rmtree(folder)
    raise
sys.path.insert(0, str(folder / "code.zip"))
from longfat.backends.testbed.agent.serve import main
main(folder)
"""

# Messages of ssh and their meaning.
KNOWN_FAULTS = (
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed",
        "the host's key differs from the known key",
    ),
    (r"Permission denied", "none of your keys may log in there"),
    (r"sudo:", "the user cannot become root without a password"),
    (r"timed out|refused|No route|unreachable|Could not resolve", "the host does not answer"),
)


@dataclass(frozen=True)
class Clock:
    """Offset of a host's clock from this machine's clock in nanoseconds, and its uncertainty."""

    offset_ns: int
    uncertainty_ns: int


def read_clock(exchange: Callable[[], tuple[int, int, int]]) -> Clock:
    """Return the offset by the quickest of several exchanges (Cristian, Distributed Computing 3, 1989).

    An exchange returns this machine's clock before, the host's clock, and this machine's clock after. Half of the round
    trip is the uncertainty.
    """
    before, there, after = min((exchange() for _ in range(EXCHANGES)), key=lambda times: times[2] - times[0])
    return Clock(there - (before + after) // 2, (after - before) // 2)


def drift_ns(before: Clock, after: Clock) -> int:
    """Return the least change of the offset between two readings; 0 if they agree within their uncertainty."""
    moved = abs(after.offset_ns - before.offset_ns)
    return max(0, moved - before.uncertainty_ns - after.uncertainty_ns)


class Connection:
    """The connection to one host, whose agent runs after ``start``."""

    def __init__(self, host: Host, lab: Path) -> None:
        self.host = host
        self._messages: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the connection
        self._lab = lab
        self._rest = b""
        self._process = subprocess.Popen(
            ssh_command(host, lab),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            preexec_fn=_begin,
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self.output = self._process.stdin, self._process.stdout
        os.set_blocking(self._input.fileno(), False)  # a host may never read

    def start(self, code: bytes) -> None:
        """Send the agent's code, a zip archive. Raises HostFailed."""
        self._write(f"{len(code)}\n".encode() + code)

    def send(self, verb: str, what: object = None) -> None:
        """Send a message to the agent. Raises HostFailed."""
        self._write(json.dumps({verb: what}).encode() + b"\n")

    def take(self) -> dict[str, Any] | None:
        """Return the next message, or None while it is incomplete. Raises HostFailed if the host is lost or refuses."""
        while b"\n" not in self._rest:
            if not select.select([self.output], [], [], 0)[0]:
                return None
            self._rest += self._read()
            if len(self._rest) > MAX_LINE:
                raise HostFailed(f"it answers with a line of more than {MAX_LINE} bytes", where=self.host.name)
        line, _, self._rest = self._rest.partition(b"\n")
        return read_message(line, self.host.name)

    def pour(self, count: int, target: IO[bytes], beat: Callable[[], None]) -> None:
        """Write the next ``count`` bytes to ``target``. Raises HostFailed if the host is lost or very slow."""
        end = time.monotonic() + ANSWER_S + count / SLOWEST_BYTES_PER_S
        while count:
            beat()
            if time.monotonic() > end:
                raise HostFailed(f"{count} bytes of its files are missing, and it is silent", where=self.host.name)
            if not self._rest:
                if not select.select([self.output], [], [], BEAT_S)[0]:
                    continue
                self._rest = self._read()
            data, self._rest = self._rest[:count], self._rest[count:]
            target.write(data)
            count -= len(data)

    def console(self) -> str:
        """Return the standard error of ssh and of the programs on the host."""
        self._messages.seek(0)
        return self._messages.read(MAX_LINE).decode(errors="replace")

    def close(self) -> None:
        """End the connection, whereupon the agent cleans up."""
        for stream in (self._input, self.output):
            with suppress(BrokenPipeError):  # unsent data is lost with the host
                stream.close()
        try:
            self._process.wait(BEAT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._messages.close()

    def _write(self, data: bytes) -> None:
        end = time.monotonic() + ANSWER_S
        while data:
            if not select.select([], [self._input], [], max(0.0, end - time.monotonic()))[1]:
                raise HostFailed(f"it reads no message for {ANSWER_S:.0f} s", where=self.host.name)
            try:
                data = data[os.write(self._input.fileno(), data[:CHUNK]) :]
            except BlockingIOError:  # the pipe has less room than PIPE_BUF
                time.sleep(0.01)
            except OSError as error:
                raise self._lost() from error

    def _read(self) -> bytes:
        data = os.read(self.output.fileno(), CHUNK)  # unbuffered: select must see the rest
        if not data:
            raise self._lost()
        return data

    def _lost(self) -> HostFailed:
        """Return the error of a lost host, with ssh's message."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(BEAT_S)
        text = self.console()
        reason = next((reason for pattern, reason in KNOWN_FAULTS if re.search(pattern, text)), "the host is lost")
        tail = "\n".join(text.strip().splitlines()[-TAIL_LINES:])
        attempt = shlex.join([*ssh_options(self.host, self._lab), "true"])
        return HostFailed(f"{reason}\n{tail}".strip(), where=self.host.name, hint=f"try: {attempt}")


def _begin() -> None:
    end_with_parent(signal.SIGTERM)
    limit_files(MAX_LINE)


def ssh_options(host: Host, lab: Path) -> list[str]:
    """Return the ssh command line before the remote command: only the lab's keys, and no prompts."""
    key = ["-i", str(lab / KEY), "-o", "IdentitiesOnly=yes"] if (lab / KEY).exists() else []
    settings = {
        "BatchMode": "yes",
        "ConnectTimeout": str(CONNECT_S),
        "ControlPath": "none",
        "GlobalKnownHostsFile": "/dev/null",
        "LogLevel": "ERROR",
        "ServerAliveCountMax": "6",
        "ServerAliveInterval": f"{BEAT_S:.0f}",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": str(lab / KNOWN_HOSTS),
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", *key, *options, "-p", str(host.port), "-l", host.user, host.address]


def ssh_command(host: Host, lab: Path) -> list[str]:
    """Return the command that starts the agent on the host, as root."""
    python = shlex.join(["python3", "-I", "-c", START])
    return [*ssh_options(host, lab), python if host.user == "root" else f"sudo -n {python}"]


class Connections:
    """Context manager of the agents on several hosts.

    ``builds`` has the build of each host's kernel.
    """

    def __init__(self, hosts: Sequence[Host], lab: Path, code: bytes) -> None:
        self._wanted = (hosts, lab, code)
        self._open: dict[str, Connection] = {}
        self._last_beat = time.monotonic()

    def __enter__(self) -> Connections:
        hosts, lab, code = self._wanted
        try:
            for host in hosts:
                self._open[host.name] = Connection(host, lab)
            for connection in self._open.values():
                connection.start(code)
            self.builds = self.gather("here", GREETING_S)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def ask(self, verb: str, timeout_s: float = ANSWER_S) -> dict[str, Any]:
        """Send every host the same question; return the answers by host. Raises HostFailed."""
        self.send(verb, dict.fromkeys(self._open))
        return self.gather(verb, timeout_s)

    def send(self, verb: str, what: Mapping[str, object]) -> None:
        """Send each host its message from ``what``. Raises HostFailed."""
        for name, connection in self._open.items():
            connection.send(verb, what[name])

    def gather(self, verb: str, timeout_s: float, hosts: Sequence[str] | None = None) -> dict[str, Any]:
        """Wait for ``verb`` from every host, or from ``hosts``; return the messages by host.

        Raises HostFailed if a host is lost, fails or is late.
        """
        answers: dict[str, Any] = {}
        end = time.monotonic() + timeout_s
        while waiting := [name for name in hosts or self._open if name not in answers]:
            if time.monotonic() > end:
                raise HostFailed(f"no {verb!r} after {timeout_s:.0f} s", where=", ".join(waiting))
            outputs = [self._open[name].output for name in waiting]
            select.select(outputs, [], [], min(BEAT_S, max(0.0, end - time.monotonic())))
            self.beat()
            for name in waiting:
                message = self._open[name].take()
                if message is not None:
                    answers[name] = checked(verb, message, name)
        return answers

    def beat(self) -> None:
        """Send the hosts a sign of life, once per interval. Raises HostFailed."""
        if time.monotonic() - self._last_beat >= BEAT_S:
            self._last_beat = time.monotonic()
            for connection in self._open.values():
                connection.send("live")

    def clock(self, name: str) -> Clock:
        """Return the clock of a host. Raises HostFailed."""

        def exchange() -> tuple[int, int, int]:
            before = time.time_ns()
            self._open[name].send("clock")
            there: int = self.gather("clock", ANSWER_S, [name])[name]
            return before, there, time.time_ns()

        return read_clock(exchange)

    def collect(self, name: str, target: IO[bytes]) -> None:
        """Write the tar archive of a host's part to ``target``. Raises HostFailed."""
        self._open[name].send("collect")
        size = self.gather("collect", ARCHIVE_S, [name])[name]
        self._open[name].pour(size, target, self.beat)

    def consoles(self) -> str:
        """Return the standard error of all hosts, each line with the host's name."""
        return "".join(
            f"{name}: {line}\n" for name, connection in self._open.items() for line in connection.console().splitlines()
        )

    def _close(self) -> None:
        for connection in self._open.values():
            connection.close()
