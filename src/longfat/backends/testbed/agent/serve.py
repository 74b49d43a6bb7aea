# SPDX-License-Identifier: Apache-2.0
"""The agent on a host: executes commands, and cleans up when the connection ends or stays silent.

A message is a line with a JSON object of one key, its verb:

| command | answer |
|---|---|
| ``look``, ``clock``, ``end`` | the same verb |
| ``prepare``: the order of agent/part.py without bases; each cable has its link instead of its card | ``ready`` |
| ``paths``: measure the round trips over the cables | ``paths`` |
| ``start``: nanoseconds of the epoch | ``measured`` |
| ``leave`` | ``done`` |
| ``collect`` | ``collect``: the size of a tar archive, which follows |
| ``live`` | none |

The answer ``failed`` means that a command cannot be executed.
"""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from longfat.backends.testbed.agent import facts, restore
from longfat.guest.sysctls import GLOBAL_SYSCTLS, GuestError
from longfat.system.locks import hold
from longfat.system.parent import end_with_parent

SILENCE_S = 30.0  # the commanding machine sends a message every five seconds
CLAIM_S = SILENCE_S + restore.PATIENCE_S  # until the agent of a lost connection has left
STATE = Path("/run/longfat")
APT_LOCK = Path("/var/lib/apt/daily_lock")  # of apt.systemd.daily, which waits for it
CHILD = (
    "import sys; sys.path.insert(0, sys.argv[1])\n"
    "from longfat.backends.testbed.agent.part import main, Path; main(Path(sys.argv[2]))"
)
ISOLATED = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
CHUNK = 1 << 16
TAIL_CHARS = 400


def main(folder: Path) -> None:
    """Serve on standard input and output; ``folder`` contains the agent's code and is removed at the end."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a lost connection also ends the input
    signal.signal(signal.SIGTERM, _interrupt)
    agent = Agent(folder)
    try:
        agent.serve()
    except (KeyboardInterrupt, BrokenPipeError):
        pass  # the clean-up below is the same for every end
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
        """Serve until the commanding machine is silent or the connection ends."""
        self._selector.register(0, selectors.EVENT_READ, Lines(self._obey))
        send({"here": facts.build()})
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
        with self._claim, suppress(restore.NotRestored):  # the next run's agent tries again and reports it
            self._end_part()

    def _end_part(self) -> None:
        """End the part of a run, if one was started, and restore the host. Raises NotRestored."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            restore.restore(self._state)
            self._child = None

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
                send({verb: {"look": facts.look, "clock": time.time_ns}[verb]()})
        except (
            OSError,
            ValueError,
            KeyError,
            GuestError,
            restore.NotRestored,
            subprocess.SubprocessError,
        ) as error:
            send({"failed": f"{type(error).__name__}: {error}"})
        self._heard = time.monotonic()  # an archive may take longer than SILENCE_S

    def _prepare(self, order: dict[str, Any]) -> None:
        """Claim this host for one run, and start its part."""
        STATE.mkdir(mode=0o700, exist_ok=True)
        self._claim_host()
        for left in self.folder.parent.glob("*/order.json"):  # left by a killed agent
            shutil.rmtree(left.parent, ignore_errors=True)
        restore.restore(self._state)
        cards = facts.cards()  # after the restoration, which may rename a card
        taken = [cards[cable.pop("link")] for cable in order["cables"].values()]
        for cable, card in zip(order["cables"].values(), taken, strict=True):
            cable["card"] = card["card"]
        order["bases"] = sorted({card["base"] for card in taken if card["base"]})
        (self.folder / "order.json").write_text(json.dumps(order))
        limits = {name for node in order["spec"]["nodes"] for name in node["sysctls"]} & GLOBAL_SYSCTLS
        restore.record(self._state, [cable["card"] for cable in order["cables"].values()], sorted(limits))
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

    def _claim_host(self) -> None:
        """Lock this host for one run, and let apt's timers wait. Raises GuestError if a lock takes over CLAIM_S."""
        self._lock(lambda: hold(STATE / "lock", wait=False), "another run uses this host")
        if APT_LOCK.is_file():
            self._lock(lambda: _hold_file(APT_LOCK), "apt updates this host")

    def _lock(self, lock: Callable[[], AbstractContextManager[object]], otherwise: str) -> None:
        end = time.monotonic() + CLAIM_S
        while True:
            try:
                self._claim.enter_context(lock())
                return
            except BlockingIOError as error:
                if time.monotonic() > end:
                    raise GuestError(otherwise) from error
                time.sleep(1.0)

    def _pass_on(self, text: str) -> None:
        if self._child is None or self._child.stdin is None:
            raise GuestError("no run has been prepared")
        self._child.stdin.write(text.encode())
        self._child.stdin.flush()

    def _finished(self) -> None:
        """Report the outcome of the part after its end."""
        assert self._child is not None
        status = self._child.wait()
        try:
            outcome = json.loads((self.folder / "raw" / "outcome.json").read_text())
        except (OSError, ValueError):
            outcome = {"status": "failed", "reason": f"its part of the run ended with status {status}"}
        if outcome["status"] == "ok":
            send({"done": outcome})
        else:
            send({"failed": "\n".join([outcome["reason"], *_last_words(self.folder)])})

    def _collect(self) -> None:
        archive = self.folder / "raw.tar.gz"
        with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
            tar.add(self.folder / "raw", arcname=".")
        send({"collect": archive.stat().st_size})
        with archive.open("rb") as file:
            while data := file.read(CHUNK):
                _write(data)

    def _finish(self) -> None:
        """Restore the host, then answer. The agent stays until the connection ends."""
        self._end_part()
        send({"end": None})


@contextmanager
def _hold_file(path: Path) -> Iterator[None]:
    """Lock a file of the host without a change to it. Raises BlockingIOError if another process holds it."""
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def _last_words(folder: Path) -> list[str]:
    """Return the last output of the programs of a failed part, whose files will be removed."""
    paths = sorted([*folder.glob("raw/iperf/*.txt"), *folder.glob("scratch/*.tcpdump")])
    texts = ((path.name, path.read_text(errors="replace").strip()) for path in paths)
    return [f"{name}: {text[-TAIL_CHARS:]}" for name, text in texts if text]


class Lines:
    """The input, split into lines."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take bytes, which may end within a line."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line.decode())


def send(message: dict[str, Any]) -> None:
    """Send a message to the commanding machine."""
    pass_through(json.dumps(message))


def pass_through(line: str) -> None:
    """Send a line to the commanding machine unchanged."""
    _write(line.encode() + b"\n")


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]
