# SPDX-License-Identifier: Apache-2.0
"""A congestion control in one C file: docs/own-algorithm.md, followed step by step."""

from __future__ import annotations

import dataclasses
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from console import agrees, follow
from guests import one_flow, virtual
from own_algorithm import PAGE, write_study
from test_determinism import differing

from longfat.backends.virtual import VirtualBackend, open_virtual
from longfat.builds.own_kernel import build_own_kernel
from longfat.study.catalog.kernels import OwnKernel
from longfat.study.load import load_study
from longfat.study.traffic.own import own_file
from longfat.system.errors import StudyError

pytestmark = pytest.mark.virtual


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the page was followed."""
    root = tmp_path_factory.mktemp("root")
    for command, output in follow(PAGE, root):
        assert agrees(command.output, output), f"$ {command.line}\n{output}"
    return root


def record(root: Path, algorithm: str) -> Path:
    """Return the folder of an algorithm's first run."""
    return next((root / "results/binomial/raw").glob(f"*algorithm-{algorithm}.r01.*"))


def flow_of(folder: Path) -> dict[str, Any]:
    (flow,) = json.loads((folder / "achieved.json").read_text())["flows"]
    return dict(flow)


@pytest.mark.parametrize(("algorithm", "b_ppm"), [("sqrt", 1_000_000), ("sqrt-gentle", 500_000)])
def test_sockets_show_the_algorithm_and_its_parameters(root: Path, algorithm: str, b_ppm: int) -> None:
    flow = flow_of(record(root, algorithm))
    assert (flow["cca"], flow["cca_parameters"]) == ("sqrt", {"a_ppm": 20_000_000, "b_ppm": b_ppm})


@pytest.fixture(scope="module")
def own(root: Path) -> VirtualBackend:
    """A kernel with the page's algorithm."""
    kernels = load_study(root / "experiments/binomial/study.yaml").own_kernels()
    return open_virtual(kernels=(*kernels,), own=kernels)


def test_the_algorithms_of_the_kernel_measure_the_same_next_to_another_one(own: VirtualBackend, tmp_path: Path) -> None:
    folders = []
    for backend, name in ((virtual(), "pinned"), (own, "own")):
        (tmp_path / name).mkdir()
        backend.run(dataclasses.replace(one_flow(duration_us=500_000), pins=backend.pins()), tmp_path / name)
        folders.append(tmp_path / name)
    assert differing(*folders) == ["environment.json"]
    ccas = [set(json.loads((folder / "environment.json").read_text())["ccas"]) for folder in folders]
    assert ccas[1] - ccas[0] == {"sqrt"}


def test_a_fault_of_the_c_file_is_named_with_its_line(tmp_path: Path) -> None:
    path = write_study(tmp_path) / "tcp_sqrt.c"
    text = path.read_text().replace("\tu32 w;\n\n\tif (!tcp", "\n\tif (!tcp")
    path.write_text(text.replace("tcp_reno_undo_cwnd", "tcp_other_undo_cwnd") + f"/* {uuid.uuid4()} */\n")
    with pytest.raises(StudyError) as caught:
        build_own_kernel(OwnKernel(sources=(own_file(tmp_path, "tcp_sqrt.c"),)))
    lines = text.splitlines()
    named = {(problem.file, lines[(problem.line or 0) - 1].strip()) for problem in caught.value.problems}
    assert named == {
        (str(path), "w = tcp_snd_cwnd(tp);"),
        (str(path), ".undo_cwnd	= tcp_reno_undo_cwnd,"),
    }
