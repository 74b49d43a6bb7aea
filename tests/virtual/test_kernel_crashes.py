# SPDX-License-Identifier: Apache-2.0
"""Faults of a study's own C file that stop the guest's kernel: each is named by file, function and line."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from guests import one_flow
from own_algorithm import write_study

from longfat.backends import guest_process
from longfat.backends.virtual import open_virtual
from longfat.study.catalog.kernels import OwnKernel
from longfat.study.traffic.own import own_file
from longfat.system.errors import RigError, SettledError

pytestmark = pytest.mark.virtual

PLACE = "\tif (!tcp_is_cwnd_limited(sk))\n"
STATE = "\nstatic u32 sqrt_zero;\n"
HELPER = (
    STATE + '\nstatic noinline void sqrt_fault(void)\n{{\n\tpr_info("sqrt: the window is watched\\n");\n\t{fault}\n}}\n'
)
FAULTS = {
    "division": ("WRITE_ONCE(sqrt_zero, 7 / READ_ONCE(sqrt_zero));", "division by zero"),
    "loop": ("while (!READ_ONCE(sqrt_zero))\n\t\tcpu_relax();", "loops"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_studys_own_file_is_named_and_settled(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest_process, "STILL_CPU_S", 3.0)
    code, cause = FAULTS[fault]
    path = write_study(tmp_path) / "tcp_sqrt.c"
    begin, name, rest = path.read_text().partition("static void sqrt_cong_avoid")
    rest = rest.replace(PLACE, f"\tsqrt_fault();\n{PLACE}")
    path.write_text(f"{begin}{HELPER.format(fault=code)}\n{name}{rest}")
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if text.strip() == code.split("\n")[0])
    own = OwnKernel(sources=(own_file(tmp_path, "tcp_sqrt.c"),))
    backend = open_virtual(kernels=(own.name,), own={own.name: own})
    spec = one_flow(duration_us=300_000)
    flows = tuple(dataclasses.replace(flow, cca="sqrt") for flow in spec.flows)
    folder = tmp_path / "run"
    folder.mkdir()
    with pytest.raises(RigError) as caught:
        backend.run(dataclasses.replace(spec, flows=flows, pins=backend.pins()), folder)
    assert caught.type is SettledError
    first = caught.value.message.splitlines()[0]
    assert "in sqrt_fault(): " in first and cause in first
    assert first.split(",")[0] in {f"tcp_sqrt.c:{line}", f"tcp_sqrt.c:{line + 1}"}
    console = (folder / "console.log").read_text()
    assert "sqrt: the window is watched" in console
    assert "Call Trace:" in console
