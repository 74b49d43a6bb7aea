# SPDX-License-Identifier: Apache-2.0
"""Every named kernel boots, has every algorithm, and repeats itself; one plan may need several.

`LONGFAT_TEST_KERNEL=NAME ./just test tests/virtual` runs all other tests of guests on another kernel.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from guests import one_flow, virtual
from test_determinism import differing

from longfat.backends.virtual import VirtualBackend
from longfat.spec.runspec import RunSpec
from longfat.study.catalog.ccas import CCAS
from longfat.study.catalog.kernels import KERNELS

pytestmark = [pytest.mark.virtual, pytest.mark.kernels]

NEWER = "linux-7.3"


def short(name: str, cca: str = "reno") -> RunSpec:
    """Half a second of one flow."""
    spec = one_flow(duration_us=500_000)
    flow = dataclasses.replace(spec.flows[0], cca=cca)
    return dataclasses.replace(spec, flows=(flow,), pins=virtual(name).pins())


def run(backend: VirtualBackend, spec: RunSpec, folder: Path) -> Path:
    folder.mkdir()
    backend.run(spec, folder)
    outcome = json.loads((folder / "outcome.json").read_text())
    assert (outcome["status"], outcome["reason"]) == ("ok", None)
    return folder


def test_one_backend_runs_each_spec_on_the_kernel_that_it_pins(tmp_path: Path) -> None:
    backend = dataclasses.replace(virtual(), kernels={name: virtual(name).kernel for name in KERNELS})
    for name in KERNELS:
        spec = short(name)
        assert backend.refuses(spec) == ()
        environment = json.loads((run(backend, spec, tmp_path / name) / "environment.json").read_text())
        assert environment["kernel_release"].startswith(name.split("-")[1])


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("cca", CCAS)
def test_a_flow_uses_each_algorithm_of_the_catalogue(tmp_path: Path, name: str, cca: str) -> None:
    folder = run(virtual(name), short(name, cca), tmp_path / "run")
    (flow,) = json.loads((folder / "flows.json").read_text())
    assert flow["cca"] == cca
    assert flow["goodput_bps"] > 1_000_000


def test_seccomp_filters_and_ptrace_give_the_same_bytes(tmp_path: Path) -> None:
    backend, folders = virtual(NEWER), []
    for word in ("seccomp=on", "seccomp=off"):  # what stops the programs of its guests
        kernel = dataclasses.replace(backend.kernel, command_line=(word,))
        own = dataclasses.replace(backend, kernels={NEWER: kernel})
        folders.append(run(own, short(NEWER), tmp_path / word))
    assert differing(*folders) == []
