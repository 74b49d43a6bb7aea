# SPDX-License-Identifier: Apache-2.0
"""The builds that are compared: trees of the project, each driven by a process with only that tree's code.

Owns ``<cache>/bench/<commit>/``: ``tree``, the files of a commit as git has them, and ``cache``, the cache folder of
that code. The cache folder is separate because another commit may lay it out differently.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from longfat.bench.cases import Case, Timing
from longfat.cache import cache_folder
from longfat.errors import RigError, StudyError
from longfat.store import keep
from longfat.tools import git

TREE = Path(__file__).resolve().parents[3]
DRIVER = Path(__file__).with_name("driver.py")
SHORT = 7  # digits that identify a commit


@dataclass(frozen=True)
class Build:
    """The project's files at some state, by the name that tables give it, and the place of its builds."""

    name: str
    tree: Path
    cache: Path


def this_build() -> Build:
    """The tree that this code is of, as it is now."""
    return Build("here", TREE, cache_folder())


def build_at(commit: str, tree: Path = TREE) -> Build:
    """The files of a commit of the repository that ``tree`` is in: in the cache folder, unpacked now if need be.

    Raises StudyError when there is no such commit, RigError when ``tree`` is not in a repository.
    """
    if _git(tree, "rev-parse", "--git-dir").returncode:
        raise RigError("a commit can be compared with only in a clone of the repository", where=str(tree))
    found = _git(tree, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    if found.returncode:
        raise StudyError(f"no commit {commit!r}", where="--against", hint="git log --oneline; git fetch")
    digest = found.stdout.decode().strip()
    folder = cache_folder() / "bench" / digest
    keep(folder, lambda new: _unpack(tree, digest, new), "the commit", "10 MB")
    return Build(digest[:SHORT], folder / "tree", folder / "cache")


def _unpack(tree: Path, digest: str, folder: Path) -> None:
    archive = _git(tree, "archive", "--format=tar", digest)
    if archive.returncode:
        raise RigError(f"git has no files of {digest}: {archive.stderr.decode().strip()}", where=str(tree))
    (folder / "tree").mkdir(parents=True)
    subprocess.run(["tar", "--extract", "--directory", str(folder / "tree")], input=archive.stdout, check=True)


def _git(tree: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return git(tree, *arguments)
    except FileNotFoundError as error:
        raise RigError("git is not installed", hint="as root: apt-get install git") from error


class Driven:
    """A build at work: a separate process, which ends with the block. ``backend`` is where its runs happen."""

    def __init__(self, build: Build, backend: str = "virtual") -> None:
        self.build = build
        self._process = subprocess.Popen(
            # -P: the folder of the program is of this build, and not for the other to import from.
            [sys.executable, "-P", str(DRIVER), backend],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=build.tree,
            env={
                **os.environ,
                "PYTHONPATH": str(build.tree / "src"),
                "LONGFAT_ROOT": str(build.tree),
                "LONGFAT_CACHE": str(build.cache),
            },
            start_new_session=True,  # Ctrl-C is for this process, which then stops that one
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._process.terminate()  # its guest ends with it
        self._process.communicate()

    def reasons(self) -> list[str]:
        """Why the backend cannot work here; empty when it can. Builds missing parts. Raises RigError."""
        reasons: list[str] = self._ask("reasons")
        return reasons

    def plan(self, study: str, profile: str) -> list[str]:
        """Names of the study's distinct runs. Raises RigError, also when this build cannot read the study."""
        names: list[str] = self._ask("plan", study=study, profile=profile)
        return names

    def time_case(self, case: Case) -> Timing:
        """Do the case once. Raises RigError when it is refused or fails."""
        return Timing(**self._ask("time_case", case=asdict(case)))

    def time_planned(self, name: str) -> Timing:
        """Do a run of the plan once. Raises RigError when it fails."""
        return Timing(**self._ask("time_planned", name=name))

    def _ask(self, what: str, **arguments: object) -> Any:
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(json.dumps({"do": what, **arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RigError("the process that runs this build ended; its messages are above", where=self.build.name)
        answer = json.loads(line)
        if "error" in answer:
            raise RigError(answer["error"], where=self.build.name)
        return answer["done"]
