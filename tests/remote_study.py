# SPDX-License-Identifier: Apache-2.0
"""A small study for tests of ``--on``: its repository, its dataset by one machine, and the variables of its nodes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from tiny_study import STUDY as TINY
from tiny_study import call, write_tiny

from longfat.dataset.build import build_dataset, dataset_digests

ROOT = Path(__file__).parents[1]
RUNS = 12
STUDY = TINY.replace("[64 KiB, 1 MiB]", "[64 KiB, 128 KiB, 256 KiB, 512 KiB, 1 MiB, 2 MiB]")
# Registers the backend ``fake`` in each process, with the duration of runs that a variable of the node names. While the
# file exists that another variable names, no run of the node begins.
SITE = """
import os
import time
import fake_backend as fake

class NodeBackend(fake.FakeBackend):
    def run(self, spec, folder):
        while os.path.exists(os.environ.get("NODE_HOLD", "")):
            time.sleep(0.05)
        super().run(spec, folder)

seconds = float(os.environ.get("NODE_SECONDS", "0.4"))
fake.open_backend = lambda name, say, **settings: NodeBackend(wall_seconds=seconds)
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the study and the module that makes its backend."""
    root = tmp_path_factory.mktemp("repository")
    write_tiny(root, STUDY)
    (root / "site").mkdir()
    (root / "site/sitecustomize.py").write_text(SITE)
    return root


def on_nodes(root: Path) -> dict[str, str]:
    """Return the variables of a command, and of workers, that use the repository."""
    path = f"{root}/site:{ROOT}/tests/fake:{ROOT}/src"
    return {"LONGFAT_ROOT": str(root), "PYTHONPATH": path, "COLUMNS": "200"}


def alone(root: Path) -> dict[str, str]:
    """Execute the study on this machine; return the digests of its tables."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGFAT_ROOT", str(root))
        line = ("run", "tiny", "--backend", "fake", "--jobs", "1", "--results", str(root / "alone"))
        assert call(*line).exit_code == 0
    return dataset_of(root / "alone")


def processes(word: str, mark: str) -> list[int]:
    """Return the processes whose command line has the word and contains ``mark``."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            if word in words and mark in " ".join(words):
                found.append(int(path.parent.name))
    return found


def workers(mark: str) -> list[int]:
    """Return the processes of Dask workers whose command line contains ``mark``."""
    return processes("distributed.cli.dask_worker", mark)


def recorded(results: Path) -> int:
    """Return the number of runs recorded."""
    return len(list(results.glob("raw/delay*")))


def dataset_of(results: Path) -> dict[str, str]:
    """Build the dataset of the runs, all valid; return the digests of its tables."""
    counts = build_dataset(results)
    assert (counts.ok, counts.failed, counts.invalid, counts.missing) == (RUNS, 0, 0, 0)
    return dataset_digests(results)
