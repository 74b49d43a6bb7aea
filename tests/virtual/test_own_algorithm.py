# SPDX-License-Identifier: Apache-2.0
"""The congestion control of docs/own-algorithm.md, one C file: the kernel with it, and a file with faults."""

from __future__ import annotations

import dataclasses
import json
import uuid
from pathlib import Path

import pytest
from guests import one_flow, virtual
from own_algorithm import write_study
from test_determinism import differing
from typer.testing import CliRunner

from longfat.backends.virtual import open_virtual
from longfat.builds.own_kernel import build_own_kernel
from longfat.cli import app
from longfat.study.catalog.kernels import OwnKernel
from longfat.study.load import load_study
from longfat.study.traffic.own import own_file
from longfat.system.errors import StudyError
from longfat.system.trust import agree

pytestmark = pytest.mark.virtual


def test_the_algorithms_of_the_kernel_measure_the_same_next_to_another_one(tmp_path: Path) -> None:
    kernels = load_study(write_study(tmp_path / "study") / "study.yaml").own_kernels()
    folders = []
    for backend, name in ((virtual(), "pinned"), (open_virtual(kernels=(*kernels,), own=kernels), "own")):
        (tmp_path / name).mkdir()
        backend.run(dataclasses.replace(one_flow(duration_us=500_000), pins=backend.pins()), tmp_path / name)
        folders.append(tmp_path / name)
    assert differing(*folders) == ["environment.json"]
    ccas = [set(json.loads((folder / "environment.json").read_text())["ccas"]) for folder in folders]
    assert ccas[1] - ccas[0] == {"sqrt"}


def test_a_run_is_repeated_with_the_kernel_of_its_c_file_unless_the_file_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path))
    file = write_study(tmp_path / "study") / "tcp_sqrt.c"
    assert CliRunner().invoke(app, ["try", str(file), "--duration", "1s", "--jobs", "1"]).exit_code == 0
    (record,) = (tmp_path / "results/try/raw").glob("alone*")
    again = CliRunner().invoke(app, ["again", record.name])
    assert (again.exit_code, "byte-identical" in again.output) == (0, True), again.output
    kept = tmp_path / "results/try/study/try/tcp_sqrt.c"
    kept.write_text(kept.read_text() + "/* another */\n")
    agree(kept.read_bytes())
    again = CliRunner().invoke(app, ["again", record.name])
    assert (again.exit_code, "tcp_sqrt.c changed since the run" in again.output) == (2, True), again.output


def test_a_fault_of_the_c_file_is_named_with_its_line(tmp_path: Path) -> None:
    path = write_study(tmp_path) / "tcp_sqrt.c"
    text = path.read_text().replace("\tu32 w;\n\n\tif (!tcp", "\n\tif (!tcp")
    path.write_text(text.replace("tcp_reno_undo_cwnd", "tcp_other_undo_cwnd") + f"/* {uuid.uuid4()} */\n")
    with pytest.raises(StudyError) as caught:
        build_own_kernel(OwnKernel(sources=(own_file(tmp_path, "tcp_sqrt.c"),)))
    lines = text.splitlines()
    named = {(problem.file, lines[(problem.line or 0) - 1].strip()) for problem in caught.value.problems}
    assert named == {(str(path), "w = tcp_snd_cwnd(tp);"), (str(path), ".undo_cwnd	= tcp_reno_undo_cwnd,")}
