# SPDX-License-Identifier: Apache-2.0
"""The guest's kernel has the algorithms and parameters of the catalogue, and hosts of one run may differ in them."""

from __future__ import annotations

import csv
import dataclasses
import errno
import json
from pathlib import Path
from typing import Any

import pytest
from guests import ask, one_flow, run, virtual

from longfat.guest.sockets import TCP_CLOSE
from longfat.guest.sysctls import GLOBAL_SYSCTLS
from longfat.plan import build_plan
from longfat.spec.gates import Evidence
from longfat.spec.runspec import Probes, RunSpec
from longfat.study.catalog.ccas import CCAS, PARAMETER_SYSCTLS
from longfat.study.catalog.sysctls import SYSCTLS, any_interface
from longfat.study.load import load_study
from longfat.study.traffic import misses

pytestmark = pytest.mark.virtual

PARAMETERS = {parameter.sysctl: parameter for cca in CCAS.values() for parameter in cca.parameters.values()}
# Sysctls of the project's patches for all algorithms: default and largest value. The smallest is 0.
SWITCHES = {
    f"net.ipv4.tcp_{name}": ends
    for name, ends in {
        "small_queues": (1, 1),
        "recv_fill": (0, 1),
        "slow_start_ack_counting": (0, 1),
        "strict_cwnd_limited": (0, 1),
        "rate_halving": (0, 1),
        "local_congestion": (0, 2),
        "loss_halvings": (0, 31),
        "loss_halvings_percent": (100, 100),
        "fixed_win_scale": (0, 1),
        "rcv_truesize": (0, 1 << 20),
        "cc_info": (0, 1),
    }.items()
}
BOUNDS = {name: (p.minimum, p.maximum) for name, p in PARAMETERS.items()}
BOUNDS |= {name: (0, largest) for name, (_, largest) in SWITCHES.items()}
PROGRAM = f"""
from pathlib import Path
def path(sysctl): return Path("/proc/sys", sysctl.replace(".", "/"))
def written(sysctl, value):
    try:
        path(sysctl).write_text(str(value))
    except OSError as error:
        return -error.errno
    return int(path(sysctl).read_text())
ASKED = { ({name: [low, high, low - 1, high + 1] for name, (low, high) in BOUNDS.items()})!r}
folders = sorted(entry for entry in Path("/proc/sys/net/ipv4").glob("tcp_*") if entry.is_dir())
answer = {{"there": [f"net.ipv4.{{folder.name}}.{{file.name}}" for folder in folders for file in folder.iterdir()]}}
answer["values"] = {{name: int(path(name).read_text()) for name in ASKED if path(name).exists()}}
answer["written"] = {{name: [written(name, value) for value in ASKED[name]] for name in ASKED}}
answer["ccas"] = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
import ctypes
ctypes.CDLL(None).unshare(0x40000000)  # CLONE_NEWNET
files = (path for path in Path("/proc/sys/net").rglob("*") if path.is_file())
answer["of_a_namespace"] = [str(path.relative_to("/proc/sys")).replace("/", ".") for path in files]
"""
STUDY = """\
format: 2
study: two-to-one
title: Two senders with different parameters of one algorithm
algorithms:
  gentle: {cca: scalable, a: 0.01}
  eager: {cca: scalable, a: 0.05, b: 0.25}
experiments:
  - id: two-to-one
    topology: {kind: dumbbell, rate: 100 Mbit/s, rtt: 20 ms, senders: 2}
    flows:
      - {name: f1, from: client1, to: server, algorithm: gentle, window: 64 KiB, duration: 1 s}
      - {name: f2, from: client2, to: server, algorithm: eager, window: 64 KiB, duration: 1 s}
"""


@pytest.fixture(scope="module")
def answer() -> Any:
    return ask(PROGRAM)


def test_the_kernel_offers_every_algorithm_of_the_catalogue(answer: Any) -> None:
    assert set(CCAS) <= set(answer["ccas"])


def test_the_catalogue_has_every_parameter_of_the_kernel_and_no_other(answer: Any) -> None:
    assert sorted(answer["there"]) == sorted(PARAMETERS)


def test_the_kernel_starts_with_the_defaults_of_the_catalogue(answer: Any) -> None:
    defaults = {name: parameter.default for name, parameter in PARAMETERS.items()}
    assert answer["values"] == defaults | {name: default for name, (default, _) in SWITCHES.items()}


def test_the_kernel_takes_the_stated_range_and_nothing_beyond(answer: Any) -> None:
    assert answer["written"] == {name: [*ends, -errno.EINVAL, -errno.EINVAL] for name, ends in BOUNDS.items()}


def test_two_senders_of_one_run_use_their_own_parameters_of_one_algorithm(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    (planned,) = build_plan(load_study(path), pins=virtual().pins()).runs
    folder = run(planned.spec, tmp_path / "run")
    achieved = json.loads((folder / "achieved.json").read_text())
    used = {flow["flow"]: (flow["cca"], flow["cca_parameters"]) for flow in achieved["flows"]}
    assert used == {
        "f1": ("scalable", {"a_ppm": 10_000, "b_ppm": 125_000, "lwnd": 0}),
        "f2": ("scalable", {"a_ppm": 50_000, "b_ppm": 250_000, "lwnd": 0}),
    }
    assert misses(Evidence(planned.spec, achieved, json.loads((folder / "flows.json").read_text()))) == ()


def sampled(cca: str) -> RunSpec:
    spec = one_flow(sender={"net.ipv4.tcp_cc_info": "1"}, duration_us=500_000)
    flow = dataclasses.replace(spec.flows[0], cca=cca)
    return dataclasses.replace(spec, flows=(flow,), probes=Probes())


@pytest.mark.parametrize(("cca", "has_delay_window"), [("compound", True), ("reno", False)])
def test_only_compound_has_a_delay_window_in_its_samples(tmp_path: Path, cca: str, has_delay_window: bool) -> None:
    folder = run(sampled(cca), tmp_path / "run")
    with (folder / "sockets.csv").open(newline="") as table:
        windows = [(row["state"], row["dwnd_segments"]) for row in csv.DictReader(table)]
    *states, closed = [state for state, _ in windows]
    assert states
    assert closed == str(TCP_CLOSE)  # the kernel's report of a closed socket has nothing of its congestion control
    assert all(window.isdigit() == (has_delay_window and state != closed) for state, window in windows)


def test_the_listed_sysctls_are_those_that_a_host_has(answer: Any) -> None:
    own = {any_interface(name) for name in answer["of_a_namespace"]} - PARAMETER_SYSCTLS
    assert own | GLOBAL_SYSCTLS == SYSCTLS
