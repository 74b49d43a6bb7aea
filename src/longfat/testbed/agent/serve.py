# SPDX-License-Identifier: Apache-2.0
"""The agent on a host: follows the commanding machine, line by line, and cleans up when it hears nothing more.

A message is a JSON object on a line with one key, its verb. Of the commanding machine: ``look``, ``clock``, ``busy``,
``prepare`` (the order of agent/part.py, but a cable has its link for its card), ``paths`` (measure the round trips over
the cables), ``start`` (nanoseconds of the epoch), ``leave``, ``collect``, ``end``, ``live``. Each except the last is
answered by its own key, except that the answer to ``prepare`` is ``ready``, to ``start`` ``measured`` and to ``leave``
``done``. ``collect`` is answered by the number of bytes of a tar archive that follows. ``failed`` is the answer when
something cannot be done.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from longfat.guest.sysctls import GLOBAL_SYSCTLS, LaboratoryError
from longfat.locks import held
from longfat.parent import end_with_parent
from longfat.testbed.agent import facts, restore

SILENCE_S = 30.0  # a commanding machine sends a message every five seconds
STATE = Path("/run/longfat")
CHILD = (
    "import sys; sys.path.insert(0, sys.argv[1])\n"
    "from longfat.testbed.agent.part import main, Path; main(Path(sys.argv[2]))"
)
ISOLATED = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
CHUNK = 1 << 16
TAIL_CHARS = 400


def main(folder: Path) -> None:
    """Serve on standard input and output; ``folder`` is the agent's own, with its code, and goes at the end."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a lost connection is seen as the end of the input
    signal.signal(signal.SIGTERM, _interrupt)
    agent = Agent(folder)
    try:
        agent.serve()
    except (KeyboardInterrupt, BrokenPipeError):
        pass  # cleaned up below, as at any end
    finally:
        agent.end()
        shutil.rmtree(folder, ignore_errors=True)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


class Agent:
    """One connection's work on this host."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._state = STATE / "state.json"
        self._claim = ExitStack()
        self._child: subprocess.Popen[bytes] | None = None
        self._selector = selectors.DefaultSelector()
        self._heard = time.monotonic()

    def serve(self) -> None:
        """Until the commanding machine is silent or has gone."""
        self._selector.register(0, selectors.EVENT_READ, Lines(self._obey))
        tell({"here": facts.build()})
        while time.monotonic() - self._heard < SILENCE_S:
            for key, _ in self._selector.select(1.0):
                data = os.read(key.fd, CHUNK)
                if not data:
                    self._selector.unregister(key.fd)
                    if key.fd == 0:
                        return
                    self._finished()
                key.data.feed(data)

    def end(self) -> None:
        """End the run's programs, and restore the host."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
        with self._claim:
            if self._child is not None:
                with suppress(restore.NotRestored):  # the next run's agent tries again, and reports it
                    restore.give_back(self._state)

    def _obey(self, line: str) -> None:
        self._heard = time.monotonic()
        ((verb, what),) = json.loads(line).items()
        try:
            if verb == "prepare":
                self._prepare(what)
            elif verb in ("paths", "start", "leave"):
                self._pass_on(f"{what}\n")
            elif verb == "collect":
                self._collect()
            elif verb == "end":
                self._finish()
            elif verb != "live":
                tell({verb: {"look": facts.look, "clock": time.time_ns, "busy": facts.busy_share}[verb]()})
        except (
            OSError,
            ValueError,
            KeyError,
            LaboratoryError,
            restore.NotRestored,
            subprocess.SubprocessError,
        ) as error:
            tell({"failed": f"{type(error).__name__}: {error}"})

    def _prepare(self, order: dict[str, Any]) -> None:
        """Take this host for one run, and start the part that is here."""
        STATE.mkdir(mode=0o700, exist_ok=True)
        try:
            self._claim.enter_context(held(STATE / "lock", wait=False))
        except BlockingIOError as error:
            raise LaboratoryError("another run goes on on this host") from error
        for left in self.folder.parent.glob("*/order.json"):  # of an agent that was killed
            shutil.rmtree(left.parent, ignore_errors=True)
        restore.give_back(self._state)
        cards = facts.cards()  # only now: one that a run has left may have had another name before
        for cable in order["cables"].values():
            cable["card"] = cards[cable.pop("link")]["card"]
        (self.folder / "order.json").write_text(json.dumps(order))
        limits = {name for node in order["spec"]["nodes"] for name in node["sysctls"]} & GLOBAL_SYSCTLS
        restore.note(self._state, [cable["card"] for cable in order["cables"].values()], sorted(limits))
        command = [*ISOLATED, sys.executable, "-I", "-c", CHILD, str(self.folder / "code.zip"), str(self.folder)]
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=end_with_parent,
            start_new_session=True,
        )
        assert self._child.stdout is not None
        self._selector.register(self._child.stdout.fileno(), selectors.EVENT_READ, Lines(pass_through))

    def _pass_on(self, text: str) -> None:
        if self._child is None or self._child.stdin is None:
            raise LaboratoryError("there is no run to start")
        self._child.stdin.write(text.encode())
        self._child.stdin.flush()

    def _finished(self) -> None:
        """The part has ended: report how."""
        assert self._child is not None
        status = self._child.wait()
        try:
            outcome = json.loads((self.folder / "raw" / "outcome.json").read_text())
        except (OSError, ValueError):
            outcome = {"status": "failed", "reason": f"its part of the run ended with status {status}"}
        if outcome["status"] == "ok":
            tell({"done": outcome})
        else:
            tell({"failed": "\n".join([outcome["reason"], *_last_words(self.folder)])})

    def _collect(self) -> None:
        archive = self.folder / "raw.tar.gz"
        with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
            tar.add(self.folder / "raw", arcname=".")
        tell({"collect": archive.stat().st_size})
        with archive.open("rb") as file:
            while data := file.read(CHUNK):
                _write(data)

    def _finish(self) -> None:
        """An orderly end: the answer comes when the host is as it was. The agent stays until the connection ends."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            restore.give_back(self._state)
            self._child = None
        tell({"end": None})


def _last_words(folder: Path) -> list[str]:
    """The ends of the output of a part's programs; the files themselves are removed when it failed."""
    paths = sorted([*folder.glob("raw/iperf/*.txt"), *folder.glob("scratch/*.tcpdump")])
    texts = ((path.name, path.read_text(errors="replace").strip()) for path in paths)
    return [f"{name}: {text[-TAIL_CHARS:]}" for name, text in texts if text]


class Lines:
    """Cuts the input into lines and passes each on."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take some bytes, which need not end where a line does."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line.decode())


def tell(message: dict[str, Any]) -> None:
    """Send a message to the commanding machine."""
    pass_through(json.dumps(message))


def pass_through(line: str) -> None:
    """Send a line to the commanding machine unchanged."""
    _write(line.encode() + b"\n")


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]
