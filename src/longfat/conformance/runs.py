# SPDX-License-Identifier: Apache-2.0
"""Executes scenarios on the virtual backend, one guest for each CPU at a time, each scenario once.

Owns where their raw files go: a temporary folder that is gone with the executor.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from longfat.backends.protocol import Backend
from longfat.conformance.law import Finding, Law
from longfat.conformance.scenario import Scenario
from longfat.conformance.trace import Run, read_run


class Runs:
    """Finished and coming runs of scenarios, as a context: what is still waiting when it ends is not begun."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
        self._folder = tempfile.TemporaryDirectory(prefix="longfat-conformance-")
        self._runs: dict[Scenario, Future[Run]] = {}

    def __enter__(self) -> Runs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._folder.cleanup()

    def begin(self, laws: Iterable[Law]) -> None:
        """Have the laws' scenarios executed, in this order."""
        for scenario in dict.fromkeys(scenario for law in laws for scenario in law.scenarios):
            if scenario not in self._runs:
                self._runs[scenario] = self._pool.submit(self._execute, scenario)

    def finding(self, law: Law) -> Finding:
        """What the kernel does where the law holds; waits for the run. Raises RigError when it failed."""
        self.begin([law])
        runs = [self._runs[scenario].result() for scenario in law.scenarios]
        return Finding(law, tuple(point for run in runs for point in law.points(run)))

    def _execute(self, scenario: Scenario) -> Run:
        spec = scenario.spec(self._backend.pins())
        folder = Path(tempfile.mkdtemp(dir=self._folder.name))
        self._backend.run(spec, folder)
        return read_run(scenario, folder)
