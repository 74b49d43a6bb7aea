# SPDX-License-Identifier: Apache-2.0
"""Executes a study's notebook on its results and keeps the executed copy.

Owns the notebook's environment. The notebook in the repository is never changed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from traitlets.config import Config

from longfat.data.opened import RESULTS_VARIABLE, STUDY_VARIABLE
from longfat.errors import RigError, StudyError
from longfat.figures.drawing import seal_figures
from longfat.files import write_whole
from longfat.scratch import scratch_in
from longfat.studies import StudyFolder

CELL_SECONDS = 600
EXECUTED = "notebook.ipynb"


class _Client(NotebookClient):
    """Stops as the caller does: nbclient's own handlers of signals would let an interrupt end in a failed assertion."""

    task: asyncio.Task[Any] | None = None

    def execute(self, **options: Any) -> Any:
        self.handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            return super().execute(**options)
        except KeyboardInterrupt:
            self._stop()
            raise

    def _stop(self) -> None:
        """End the kernel and what it started at once, as its sockets are about to go; then what waits for it."""
        provisioner = self.km and self.km.provisioner
        if process := getattr(provisioner, "process", None):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # it leads a session of its own
        if self.task is not None:
            self.task.cancel()
            self.task.get_loop().run_until_complete(asyncio.gather(self.task, return_exceptions=True))

    async def async_start_new_kernel(self, **options: Any) -> None:
        self.task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number, handler in self.handlers.items():
            if loop.remove_signal_handler(number):
                signal.signal(number, handler)
        await super().async_start_new_kernel(**options)


def run_notebook(notebook: Path, results: Path, study_dir: Path | None = None) -> Path:
    """Execute a notebook and write the executed copy to ``results/notebook.ipynb``.

    Without ``study_dir`` the study is the folder of the notebook's name under ``experiments``, beside
    ``analysis``. Raises StudyError when the file is no notebook, RigError when a cell fails.
    """
    try:
        document = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, nbformat.reader.NotJSONError) as error:
        raise StudyError(f"the notebook cannot be read: {error}", where=str(notebook)) from error
    study = study_dir or notebook.resolve().parents[2] / "experiments" / notebook.stem
    with scratch_in(Path(tempfile.gettempdir()), "longfat-notebook-") as scratch:
        # Unix sockets in a private folder: no port is opened and nothing is left in the user's home.
        sockets = {"transport": "ipc", "connection_file": f"{scratch}/kernel.json"}
        client = _Client(
            document,
            timeout=CELL_SECONDS,
            kernel_name="python3",
            record_timing=False,
            config=Config({"KernelManager": sockets}),
            resources={"metadata": {"path": str(notebook.resolve().parent)}},
        )
        try:
            client.execute(env=_environment(results, study, str(scratch)))
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            last = str(error).strip().splitlines()[-1]
            hint = f"open {notebook} with {RESULTS_VARIABLE}={results} to see the cell"
            raise RigError(f"a cell of the notebook failed: {last}", where=str(notebook), hint=hint) from error
    target = results / EXECUTED
    write_whole(target, nbformat.writes(document) + "\n")  # type: ignore[no-untyped-call]
    seal_figures(results, StudyFolder(study).drawn_by, target)
    return target


def _environment(results: Path, study_dir: Path, scratch: str) -> dict[str, str]:
    """The caller's environment with the folders to read and this package; no settings of IPython."""
    package = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        RESULTS_VARIABLE: str(results.resolve()),
        STUDY_VARIABLE: str(study_dir.resolve()),
        "PYTHONPATH": f"{package}{os.pathsep}{known}" if known else package,
        "IPYTHONDIR": scratch,
    }
