# SPDX-License-Identifier: Apache-2.0
"""Executes a study's notebook on its results and keeps the executed copy.

Owns the environment of the notebook. The notebook in the repository stays unchanged.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from traitlets.config import Config

from longfat.data.opened import RESULTS_VARIABLE, STUDY_VARIABLE
from longfat.data.study_folder import StudyFolder
from longfat.figures.drawing import write_figure_checksums
from longfat.system.errors import RigError, StudyError
from longfat.system.files import write_whole
from longfat.system.scratch import scratch_in

CELL_SECONDS = 600
EXECUTED = "notebook.ipynb"
SCRATCH = "longfat-notebook-"
LONGEST_FOLDER = 107 - len(f"/{SCRATCH}12345678/kernel.json-ipc-5")  # sun_path of unix(7), without its last byte


class _Execution:
    """The cells of a notebook in their own thread and event loop: the caller keeps its signals and its loop."""

    def __init__(self, client: NotebookClient, environment: dict[str, str]) -> None:
        self._client = client
        self._environment = environment
        self._interrupted = False
        self._stop: Callable[[], object] = lambda: None

    def run(self) -> None:
        """Wait for the last cell; when the caller is interrupted, end kernel and cells at once."""
        with ThreadPoolExecutor(1) as thread:
            cells = thread.submit(asyncio.run, self._cells())
            try:
                cells.result()
            except KeyboardInterrupt:
                self._interrupted = True
                self._kill()
                with suppress(RuntimeError):  # the loop has just ended by itself
                    self._stop()
                wait([cells])
                self._kill()  # it may have been about to start
                raise

    async def _cells(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._stop = lambda: loop.call_soon_threadsafe(task.cancel)
        if not self._interrupted:
            await self._client.async_execute(env=self._environment)

    def _kill(self) -> None:
        provisioner = self._client.km and self._client.km.provisioner
        if process := getattr(provisioner, "process", None):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # it leads its own session


def run_notebook(notebook: Path, results: Path, study: Path) -> Path:
    """Execute a notebook and write the executed copy to ``results/notebook.ipynb``.

    Raises StudyError if the file is not a notebook, RigError if a cell fails.
    """
    try:
        document = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, nbformat.reader.NotJSONError) as error:
        raise StudyError(f"the notebook cannot be read: {error}", where=str(notebook)) from error
    with scratch_in(_socket_folder(), SCRATCH) as scratch:
        # Unix sockets in a private folder: no port is opened and nothing is left in the user's home.
        sockets = {"transport": "ipc", "connection_file": f"{scratch}/kernel.json"}
        client = NotebookClient(
            document,
            timeout=CELL_SECONDS,
            kernel_name="python3",
            record_timing=False,
            config=Config({"KernelManager": sockets}),
            resources={"metadata": {"path": str(notebook.resolve().parent)}},
        )
        try:
            _Execution(client, _environment(results, study, str(scratch))).run()
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            last = str(error).strip().splitlines()[-1]
            hint = f"open {notebook} with {RESULTS_VARIABLE}={results} to see the cell"
            raise RigError(f"a cell of the notebook failed: {last}", where=str(notebook), hint=hint) from error
    target = results / EXECUTED
    write_whole(target, nbformat.writes(document) + "\n")  # type: ignore[no-untyped-call]
    write_figure_checksums(results, StudyFolder(study).drawn_by, target)
    return target


def _socket_folder() -> Path:
    """Return the folder for temporary files, or /tmp if the path of a socket in it would be too long."""
    chosen = Path(tempfile.gettempdir())
    return chosen if len(os.fsencode(chosen)) <= LONGEST_FOLDER else Path("/tmp")


def _environment(results: Path, study_dir: Path, scratch: str) -> dict[str, str]:
    """Return the caller's environment with the folders to read and this package, without other settings."""
    package = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        RESULTS_VARIABLE: str(results.resolve()),
        STUDY_VARIABLE: str(study_dir.resolve()),
        "PYTHONPATH": f"{package}{os.pathsep}{known}" if known else package,
        "IPYTHONDIR": scratch,
        "MATPLOTLIBRC": os.devnull,
    }
