# SPDX-License-Identifier: Apache-2.0
"""The guest's kernel has the algorithms and parameters of the catalogue, and names what it lacks or refuses."""

from __future__ import annotations

import dataclasses
import errno
import json
from pathlib import Path
from typing import Any

import pytest
from guests import ask, one_flow, run

from longfat.guest.sysctls import GLOBAL_SYSCTLS
from longfat.spec.runspec import RunSpec
from longfat.study.catalog.ccas import CCAS, PARAMETER_SYSCTLS
from longfat.study.catalog.sysctls import SYSCTLS, any_interface

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


def test_the_listed_sysctls_are_those_that_a_host_has(answer: Any) -> None:
    own = {any_interface(name) for name in answer["of_a_namespace"]} - PARAMETER_SYSCTLS
    assert own | GLOBAL_SYSCTLS == SYSCTLS


def outcome(folder: Path, spec: RunSpec) -> Any:
    return json.loads((run(spec, folder) / "outcome.json").read_text())


def test_an_algorithm_that_the_kernel_lacks_ends_the_run_before_any_traffic(tmp_path: Path) -> None:
    spec = one_flow()
    flow = dataclasses.replace(spec.flows[0], cca="nosuch")
    found = outcome(tmp_path / "run", dataclasses.replace(spec, flows=(flow,)))
    assert (found["status"], found["end_us"]) == ("failed", 0)
    assert "'nosuch'" in found["reason"] and "scalable" in found["reason"]


@pytest.mark.parametrize(("sysctl", "value"), [("net.ipv4.tcp_small_queues", "2"), ("net.ipv4.tcp_nosuch.a_ppm", "1")])
def test_a_sysctl_that_the_kernel_refuses_is_named_with_its_host(tmp_path: Path, sysctl: str, value: str) -> None:
    found = outcome(tmp_path / "run", one_flow(sender={sysctl: value}))
    assert found["status"] == "failed"
    assert all(word in found["reason"] for word in ("client1: ", sysctl, f"'{value}'"))
