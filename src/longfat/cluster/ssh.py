# SPDX-License-Identifier: Apache-2.0
"""Hosts that one can log in to, and nothing else: no shared folder, no daemon. One task a host, over ssh(1).

A host has a checkout of the same version, set up by ``./just``. Its task works in a folder of its own below the home
folder, which stays: a task that is started again there goes on. Records are brought here while it runs. Must not know
runs.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from longfat.cluster.protocol import Standing, Work, checkout
from longfat.errors import StudyError

ALLOWED = "ssh:HOST[:CHECKOUT],... ; a checkout without a path is where this one is"
BESIDE = ".longfat-tasks"  # in the home folder of a host

FETCH_S = 15  # so often what a host has recorded is fetched
TAKEN = "--no-same-owner --no-same-permissions"  # files of root's among them get no rights that a host gives them

# Runs here, one for each host: sends the lock, starts the task, and fetches what it records, while it goes and once
# more. What was cut off on the way is fetched again.
_SCRIPT = """\
set -u
part={part} draft={draft}
exec >>{log} 2>&1
begun=$(date +%s)
fetch() {{
    rm -rf "$draft" && mkdir -p "$part/raw" "$draft"
    (cd "$part" && ls -d raw/* */raw/* 2>/dev/null) | {ssh} {host} {pack} |
        tar --extract {taken} --directory "$draft" || return
    for record in "$draft"/raw/* "$draft"/*/raw/*; do
        place=$part${{record#"$draft"}}
        [ -d "$record" ] && mkdir -p "${{place%/*}}" && mv "$record" "$place"
    done
    rm -rf "$draft"
}}
(
    tar --create --directory {results} lock.json seals |
        {ssh} {host} {unpack} && {ssh} {host} {start}
) &
task=$!
seconds=0
while kill -0 $task; do
    sleep 1
    seconds=$((seconds + 1))
    [ $((seconds % {often})) = 0 ] && fetch
done 2>/dev/null
wait $task
status=$?
fetch
echo {host} $status $(($(date +%s) - begun)) >{ended}.draft && mv {ended}.draft {ended}
"""

# Runs on a host, in the task's folder: what is recorded there and not named in the input.
_PACK = """cat >.fetched && ls -d raw/* */raw/* 2>/dev/null | grep -vxF -f .fetched | tar --create --files-from=-"""


@dataclass(frozen=True)
class Host:
    """A host as ssh(1) knows it, and the folder of its checkout."""

    name: str
    checkout: str


@dataclass
class Ssh:
    """Hosts; ``command`` is how to log in to one."""

    hosts: tuple[Host, ...]
    command: tuple[str, ...]
    started: dict[str, list[subprocess.Popen[bytes]]] = field(default_factory=dict)
    places: dict[str, Path] = field(default_factory=dict)

    name = "ssh"

    @property
    def tasks(self) -> int:
        """One for each host."""
        return len(self.hosts)

    def text(self, work: Work) -> str:
        """What is executed here, host by host."""
        return "\n".join(self._script(work, number, host) for number, host in enumerate(self._of(work), 1))

    def submit(self, work: Work) -> None:
        """Start a process here for each host, which logs in to it."""
        (work.folder / "ended").mkdir(parents=True, exist_ok=True)
        for part in work.folder.glob("part-*"):  # it may have records of a host that was found wrong meanwhile
            shutil.rmtree(part)
        self.places[work.name] = work.folder
        self.started[work.name] = [
            subprocess.Popen(
                ["sh", "-c", self._script(work, number, host)], stdin=subprocess.DEVNULL, start_new_session=True
            )
            for number, host in enumerate(self._of(work), 1)
        ]

    def poll(self, name: str) -> Standing:
        """Count these processes; those of an earlier command are not known, and what they execute is not repeated."""
        return Standing(0, sum(process.poll() is None for process in self.started.get(name, ())))

    def cancel(self, name: str) -> None:
        """End the processes here, and with their connections the tasks."""
        for process in self.started.get(name, ()):
            with suppress(ProcessLookupError):  # it has ended
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()

    def nodes(self) -> frozenset[str]:
        """The hosts."""
        return frozenset(host.name for host in self.hosts)

    def parts(self, name: str) -> Sequence[Path]:
        """What has been fetched; a record is there complete or not at all."""
        return sorted(self.places[name].glob("part-*")) if name in self.places else ()

    def _of(self, work: Work) -> list[Host]:
        return [host for host in self.hosts if host.name not in work.exclude][: work.tasks]

    def _script(self, work: Work, number: int, host: Host) -> str:
        count = len(self._of(work))
        place = f'"$HOME"/{shlex.quote(f"{BESIDE}/{work.name}")}'
        shard = ["env", f"JOB_COMPLETION_INDEX={number - 1}", f"JOB_COMPLETIONS={count}", f"NODE_NAME={host.name}"]
        line = shlex.join([*shard, ".venv/bin/python", "-P", "-m", "longfat", "task"])
        options = shlex.join(work.options)
        fresh = f"mkdir -p {place} && tar --extract --directory {place}"
        start = f'place={place}; cd {shlex.quote(host.checkout)} && exec {line} "$place" {options}'
        part = work.folder / f"part-{number}-{os.getpid()}"
        return _SCRIPT.format(
            ssh=shlex.join(self.command),
            host=shlex.quote(host.name),
            results=shlex.quote(str(work.results)),
            unpack=shlex.quote(fresh),
            start=shlex.quote(start),
            pack=shlex.quote(f"cd {place} && {_PACK}"),
            log=shlex.quote(str(work.folder / f"task-{number}.log")),
            taken=TAKEN,
            part=shlex.quote(str(part)),
            draft=shlex.quote(str(part.with_name(f".{part.name}"))),
            often=FETCH_S,
            ended=shlex.quote(str(work.folder / "ended" / str(number))),
        )


def read_hosts(text: str) -> tuple[Host, ...]:
    """Read ``HOST[:CHECKOUT],...``. Raises StudyError on hosts without a name, and on one that is named twice."""
    parts = [part.partition(":") for part in text.split(",")]
    names = [name for name, _, _ in parts]
    if not all(names) or len(set(names)) < len(names) or any(name.startswith("-") for name in names):
        raise StudyError(f"{text!r} does not name hosts, each once; allowed: {ALLOWED}", where="--on")
    return tuple(Host(name, path or checkout()) for name, _, path in parts)
