# SPDX-License-Identifier: Apache-2.0
"""Programs of the user in a run: one that sends, one that receives, and the count of packets between them.

They run as user nobody: their files are copied to their own folder, and ``execute`` drops all rights before it becomes
the program.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longfat.guest import program, wiretap
from longfat.guest.files import copy_file, report_of, write_json
from longfat.guest.processes import end_with_run
from longfat.guest.sysctls import GuestError
from longfat.spec.runspec import Program, RunSpec

if TYPE_CHECKING:
    from longfat.guest.run import RunContext

FILES = "files"  # folder next to the raw files, with the files of all programs by SHA-256
MODULE = "longfat.guest.kinds.programs"
NOBODY = 65534
PR_SET_NO_NEW_PRIVS = 38  # linux/prctl.h
MOST_FILES, MOST_BYTES = 4096, 64 << 20  # open files of a program, length of its files
READY_S = 10.0  # a receiving program opens its socket within this time
GRACE_S = 2.0  # time of a terminated program until it is killed
TAIL_BYTES = 2000  # end of a program's output that is kept
READ_US = 100_000  # interval at which packets are counted if queues are not sampled
COLUMNS = "t_us,programs,received_packets,received_bytes,payload_bytes"


class Traffic:
    """All programs of a run."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self.ports = {one.name: one.port for one in context.spec.programs}
        self._taps: dict[str, wiretap.Wiretap] = {}
        self._running: dict[str, dict[str, subprocess.Popen[bytes]]] = {}
        self._ended: dict[str, int] = {}
        self._files: list[dict[str, Any]] = []

    def prepare(self) -> None:
        """Copy the files, start the receivers, and wait until they have a socket."""
        for one in self._context.spec.programs:
            folder = self._folder(one)
            folder.mkdir(parents=True)
            for name, digest in one.files.items():
                shutil.copyfile(self._context.folder.parent / FILES / digest, folder / name)
                (folder / name).chmod(0o755)
            self._context.scratch.chmod(0o711)
            folder.parent.chmod(0o711)
            folder.chmod(0o777)
            self._taps[one.name] = self._open_tap(one)
            self._running[one.name] = {"receive": self._start(one, one.receiver, "receive")}
            self._wait_for_socket(one)

    def plan(self) -> None:
        """Plan the start and end of the senders, and the counting of packets."""
        timeline, probes = self._context.timeline, self._context.spec.probes
        for one in self._context.spec.programs:
            timeline.at(one.start_us, partial(self._send, one))
            timeline.at(one.start_us + one.duration_us, partial(self._end, one, "send"))
        table = self._context.cleanup.enter_context((self._context.folder / "program_packets.csv").open("w"))
        print(COLUMNS, file=table)
        timeline.repeat(probes.queue_interval_us or READ_US, partial(self._sample, table))

    def finish(self) -> None:
        """End every program, and count the last packets."""
        for one in self._context.spec.programs:
            self._end(one, "send")
            self._end(one, "receive")
            self._taps[one.name].read()
            self._files += [self._copy_file(one, name) for name in one.keep]
        rows = [self._report(one) for one in self._context.spec.programs]
        write_json(self._context.folder / "programs.json", rows)

    def achieved(self) -> dict[str, Any]:
        """Return each program's exit status, user and last output, and the files that were kept."""
        ended = []
        for one in self._context.spec.programs:
            for role, process in self._running[one.name].items():
                output = self._output(one, role).read_bytes()[-TAIL_BYTES:].decode(errors="replace")
                end = {"status": process.returncode, "asked": f"{one.name} {role}" in self._ended}
                ended.append({"programs": one.name, "role": role, "user": NOBODY, "said": output, **end})
        return {"programs": ended, "program_files": self._files}

    def _copy_file(self, one: Program, name: str) -> dict[str, Any]:
        """Copy a file left by the programs; return its entry of achieved.json."""
        target = self._context.folder / "programs" / one.name / name
        reason = copy_file(self._folder(one) / name, target, one.most_kept_bytes)
        return {"programs": one.name, "file": name, "reason": reason}

    def _report(self, one: Program) -> dict[str, Any]:
        tap = self._taps[one.name]
        return report_of("programs", one) | {
            "received_packets": tap.counts.packets,
            "received_bytes": tap.counts.ip_bytes,
            "payload_bytes": tap.counts.payload_bytes,
            "uncounted_packets": tap.lost(),
        }

    def _sample(self, table: Any) -> None:
        t_us = self._context.timeline.now_us()
        for name, tap in self._taps.items():
            tap.read()
            counts = tap.counts
            print(f"{t_us},{name},{counts.packets},{counts.ip_bytes},{counts.payload_bytes}", file=table)

    def _open_tap(self, one: Program) -> wiretap.Wiretap:
        network = self._context.network
        with network.inside(one.receiver):
            interface = network.ports[one.receiver][0].name
            tap = wiretap.Wiretap(interface, network.topology.address(one.sender), one.port)
        return self._context.cleanup.enter_context(tap)

    def _send(self, one: Program) -> None:
        self._running[one.name]["send"] = self._start(one, one.sender, "send")

    def _start(self, one: Program, node: str, role: str) -> subprocess.Popen[bytes]:
        words = {
            "{address}": self._context.network.topology.address(one.receiver),
            "{port}": str(one.port),
            "{seconds}": f"{one.duration_us / 1e6:g}",
            "{seed}": str(self._context.spec.seed),
        }
        order: dict[str, object] = {
            "folder": str(self._folder(one)),
            "command": [fill(word, words) for word in getattr(one, role)],
        }
        output = self._context.cleanup.enter_context(self._output(one, role).open("wb"))
        command = program.command(MODULE, "execute", order)
        return end_with_run(self._context.cleanup, self._context.network.start_tool(node, command, output))

    def _end(self, one: Program, role: str) -> None:
        """Terminate a program; kill it if it does not end."""
        process = self._running[one.name].get(role)
        if process is None or process.poll() is not None:
            return
        self._ended[f"{one.name} {role}"] = 1
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _wait_for_socket(self, one: Program) -> None:
        deadline = time.monotonic() + READY_S
        process = self._running[one.name]["receive"]
        while not self._has_socket(one):
            if process.poll() is not None:
                output = self._output(one, "receive").read_text(errors="replace")[-TAIL_BYTES:]
                raise GuestError(
                    f"the receiving program of {one.name} ended with status {process.returncode} before it had a "
                    f"socket: {output.strip()}"
                )
            if time.monotonic() > deadline:
                raise GuestError(
                    f"the receiving program of {one.name} has no socket of port {one.port} after {READY_S:g} s"
                )
            time.sleep(0.01)

    def _has_socket(self, one: Program) -> bool:
        with self._context.network.inside(one.receiver):
            tables = [Path(f"/proc/self/net/{name}") for name in ("udp", "tcp", "udp6", "tcp6")]
            lines = [line for path in tables if path.exists() for line in path.read_text().splitlines()[1:]]
        return any(line.split()[1].endswith(f":{one.port:04X}") for line in lines)

    def _folder(self, one: Program) -> Path:
        return self._context.scratch / "programs" / one.name

    def _output(self, one: Program, role: str) -> Path:
        return self._context.scratch / f"{one.name}.{role}.txt"


def fill(word: str, values: dict[str, str]) -> str:
    """Replace the names in a word of a command line by their values."""
    for name, value in values.items():
        word = word.replace(name, value)
    return word


def report(spec: RunSpec, folder: Path) -> None:
    """Do nothing: program_packets.csv and programs.json are complete."""


def execute(order: dict[str, Any]) -> None:
    """Become the program, in its own session and as user nobody."""
    os.setsid()
    os.chdir(order["folder"])
    os.umask(0o022)
    resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_FILES, MOST_FILES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    command = order["command"]
    environment = {"PATH": ".:/usr/bin:/bin", "HOME": order["folder"], "LC_ALL": "C", "PYTHONUNBUFFERED": "1"}
    os.execvpe(command[0], command, environment)
