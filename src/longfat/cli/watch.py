# SPDX-License-Identifier: Apache-2.0
"""The live page of ``reproduce --watch``: progress, claims, the last run's window, and the report so far.

It only reads the records that are there. ``longfat report`` rebuilds the report from a copy of the results folder,
repeatedly and at low priority, so neither the runs nor the results change. The page is on the loopback interface,
under a random address that other users of the machine cannot guess.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from csv import DictReader
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from longfat.backends.registry import DEFAULT_BACKEND
from longfat.cli.console import Output, say
from longfat.data.study_folder import StudyFolder
from longfat.execute.progress import time_left
from longfat.execute.record.bundle import run_folder_name
from longfat.execute.results import Results
from longfat.plan.estimate import seconds_on
from longfat.plan.lockfile import read_lock
from longfat.report.report import REPORT
from longfat.system.errors import LongfatError

PAUSE_S, SHARE = 5.0, 0.1  # between two reports at least; part of one CPU's time that they may take
POINTS = 300  # of the curve
PAGE = Path(__file__).with_name("watch.html")


@contextmanager
def watch(folder: StudyFolder, results: Results, out: Output) -> Iterator[None]:
    """Serve the live page until the block ends, and print its address."""
    with tempfile.TemporaryDirectory(prefix="longfat-watch-") as place:
        live = _Live(folder, results, Path(place))
        address = f"/{secrets.token_urlsafe(12)}/"
        with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, live, address)) as server:
            threads = [threading.Thread(target=one, daemon=True) for one in (server.serve_forever, live.report)]
            for thread in threads:
                thread.start()
            say(out, f"live page: http://127.0.0.1:{server.server_port}{address}")
            try:
                yield
            finally:
                live.ended.set()
                threads[1].join()
                server.shutdown()


class _Live:
    """The state of a results folder while runs come in."""

    def __init__(self, folder: StudyFolder, results: Results, copy: Path) -> None:
        self.folder, self.results, self.copy = folder, results, copy
        self.ended = threading.Event()
        self.started, self.before = time.monotonic(), set(self._names())
        self.reports = self.written = 0
        self.planned: list[tuple[str, str, float]] = []
        self.last: dict[str, Any] = {"run": "", "curves": []}

    def _names(self) -> list[str]:
        return [one.name for one in self.results.raw.iterdir() if one.name[0] != "."]

    def state(self) -> dict[str, Any]:
        """Return progress by experiment, verdicts by claim, the number of reports, and the last run's window."""
        return {"experiments": self._progress(), "claims": self._claims(), "reports": self.reports, **self._last()}

    def _planned(self) -> list[tuple[str, str, float]]:
        """Return experiment, folder's name and estimated seconds of each run of the lock; none before it is written."""
        try:
            written = self.results.lock.stat().st_mtime_ns
            if written != self.written:
                plan = read_lock(self.results.lock)
                cost = partial(seconds_on, plan.pins.get("backend", DEFAULT_BACKEND))
                runs = {run.run_id: run for run in reversed(plan.runs)}.values()  # a shared run is the first one's
                names = [run_folder_name(run.scenario, run.repetition, run.run_id) for run in runs]
                rows = [(run.experiment, name, cost(run.spec)) for run, name in zip(runs, names, strict=True)]
                self.planned, self.written = rows[::-1], written
        except (OSError, LongfatError):
            return []
        return self.planned

    def _progress(self) -> list[dict[str, Any]]:
        """Return the runs done and planned of each experiment, and the time left until it is complete."""
        planned, there = self._planned(), set(self._names())
        spent = sum(seconds for _, name, seconds in planned if name in there - self.before)
        pace = (time.monotonic() - self.started) / spent if spent else 0.0
        rows, waiting = [], 0.0
        for experiment in dict.fromkeys(one for one, _, _ in planned):
            names = [(name, seconds) for one, name, seconds in planned if one == experiment]
            missing = [seconds for name, seconds in names if name not in there]
            waiting += sum(missing)
            left = time_left(waiting * pace) if pace and missing else ""
            done = len(names) - len(missing)
            rows.append({"name": experiment, "done": done, "total": len(names), "left": left})
        return rows

    def _claims(self) -> list[dict[str, str]]:
        """Return each claim's verdict by the runs so far."""
        try:
            verdicts = json.loads((self.copy / "verdicts.json").read_text(encoding="utf-8"))["verdicts"]
        except (OSError, ValueError):
            return [{"claim": claim.id, "verdict": "runs missing"} for claim in self.folder.claims]
        words = {one["claim"]: "runs missing" if one["why"] == "runs missing" else one["verdict"] for one in verdicts}
        return [{"claim": claim, "verdict": word} for claim, word in words.items()]

    def _last(self) -> dict[str, Any]:
        """Return name and window over time, in seconds and segments, of the run that ended last."""
        folders = [one for one in self.results.raw.iterdir() if (one / "run.json").exists() and one.name[0] != "."]
        newest = max(folders, key=lambda one: (one / "run.json").stat().st_mtime, default=None)
        if newest and self.last["run"] == newest.name:
            return self.last
        curves: dict[str, list[tuple[float, int]]] = {}
        if newest and (newest / "sockets.csv").exists():
            with (newest / "sockets.csv").open(encoding="ascii", newline="") as file:
                for row in DictReader(file):
                    point = (int(row["t_us"]) / 1e6, int(row["cwnd_segments"]))
                    curves.setdefault(f"{row['flow']}.{row['stream']}", []).append(point)
        thin = [points[:: max(1, len(points) // POINTS)] for points in list(curves.values())[:8]]
        self.last = {"run": newest.name if newest else "", "curves": thin}
        return self.last

    def report(self) -> None:
        """Rebuild the report until the runs have ended; a longer report is rebuilt less often."""
        began = 0.0
        while not self.ended.wait(max(PAUSE_S, began / SHARE)):
            if not self.results.lock.exists() or not self._names():
                continue
            (self.copy / "raw").mkdir(exist_ok=True)
            for file in self.results.path.glob("*.json"):
                if file.name != "verdicts.json" and file.is_file():
                    shutil.copy(file, self.copy)
            for name in self._names():
                link = self.copy / "raw" / name
                if not link.is_symlink():
                    link.symlink_to(self.results.raw.resolve() / name)
            command = [sys.executable, "-m", "longfat", "report", str(self.folder.path), "--results", str(self.copy)]
            start = time.monotonic()
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                os.setpriority(os.PRIO_PROCESS, process.pid, 10)
                while process.poll() is None:
                    if self.ended.wait(0.2):
                        process.terminate()
                        return
            began = time.monotonic() - start
            self.reports += (self.copy / REPORT).exists()


class _Handler(BaseHTTPRequestHandler):
    """Answers with the page, its state, or the report so far."""

    def __init__(self, live: _Live, address: str, *arguments: Any) -> None:
        self.live, self.address = live, address
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """Answer one request."""
        answers: dict[str, Callable[[], tuple[str, bytes]]] = {
            "": lambda: ("text/html", PAGE.read_bytes()),
            "state": lambda: ("application/json", json.dumps(self.live.state()).encode()),
            REPORT: lambda: ("text/html", (self.live.copy / REPORT).read_bytes()),
        }
        path = self.path.partition("?")[0]
        answer = answers.get(path[len(self.address) :]) if path.startswith(self.address) else None
        try:
            kind, body = answer() if answer else ("", b"")
        except (OSError, ValueError, KeyError, TypeError):  # no report yet, or a run's table that cannot be read
            kind, body = "", b""
        self.send_response(200 if kind else 404)
        self.send_header("Content-Type", f"{kind or 'text/plain'}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""
