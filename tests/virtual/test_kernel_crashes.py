# SPDX-License-Identifier: Apache-2.0
"""Faults of a study's own C file that stop the guest's kernel: each is named by file, function and line."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from guests import one_flow
from own_algorithm import write_study

from longfat.backends import guest_process
from longfat.backends.virtual import VirtualBackend, open_virtual
from longfat.study.catalog.kernels import OwnKernel
from longfat.study.traffic.own import own_file
from longfat.system.errors import RigError, SettledError

pytestmark = pytest.mark.virtual

PLACE = "\tif (!tcp_is_cwnd_limited(sk))\n"
HELPER = """
static u32 sqrt_zero;

static noinline void sqrt_fault(u64 b)
{
	pr_info("sqrt: the window is watched\\n");
	if (b == TCP_CC_PPM)
		WRITE_ONCE(sqrt_zero, 7 / READ_ONCE(sqrt_zero));
	while (!READ_ONCE(sqrt_zero))
		cpu_relax();
}

"""
FAULTS = {  # b in parts per million, code, cause
    "division": ("1000000", "WRITE_ONCE(sqrt_zero, 7 / READ_ONCE(sqrt_zero));", "division by zero"),
    "loop": ("500000", "while (!READ_ONCE(sqrt_zero))", "loops"),
}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, VirtualBackend]:
    """A C file with both faults, and a kernel with it."""
    folder = write_study(tmp_path_factory.mktemp("faulty"))
    path = folder / "tcp_sqrt.c"
    begin, name, rest = path.read_text().partition("static void sqrt_cong_avoid")
    rest = rest.replace(PLACE, f"\tsqrt_fault(sqrt_param(sk, SQRT_B));\n{PLACE}")
    path.write_text(f"{begin}{HELPER}{name}{rest}")
    own = OwnKernel(sources=(own_file(folder, path.name),))
    return path, open_virtual(kernels=(own.name,), own={own.name: own})


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_studys_own_file_is_named_and_settled(
    fault: str, faulty: tuple[Path, VirtualBackend], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest_process, "STILL_CPU_S", 3.0)
    (path, backend), (b_ppm, code, cause) = faulty, FAULTS[fault]
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if text.strip() == code)
    spec = one_flow(duration_us=300_000, sender={"net.ipv4.tcp_sqrt.b_ppm": b_ppm})
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
