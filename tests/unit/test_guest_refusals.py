# SPDX-License-Identifier: Apache-2.0
"""What a laboratory says of algorithms and sysctls that its kernel does not have or refuses."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from conftest import delay_spec

from longfat.guest import sysctls
from longfat.guest.ccas import refused_ccas


def test_an_algorithm_that_is_there_is_no_reason() -> None:
    assert refused_ccas(delay_spec(cca="reno"), ["reno", "cubic"]) == ()


def test_each_missing_algorithm_is_named_once_with_those_that_are_there() -> None:
    flow = delay_spec().flows[0]
    flows = tuple(dataclasses.replace(flow, name=f"f-{k}", cca=cca) for k, cca in enumerate(["cubik", "zap", "zap"]))
    assert refused_ccas(dataclasses.replace(delay_spec(), flows=flows), ["reno", "cubic"]) == (
        "no congestion control 'cubik', there are cubic, reno; did you mean 'cubic'?",
        "no congestion control 'zap', there are cubic, reno",
    )


def test_a_sysctl_that_the_kernel_does_not_have_is_named_with_its_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysctls, "sysctl_path", lambda name: tmp_path / "nowhere" / name)
    with pytest.raises(sysctls.GuestError, match=r"^the kernel has no sysctl net\.x, which should be '1'$"):
        sysctls.write_sysctl("net.x", "1")


def test_a_value_that_the_kernel_refuses_is_named_with_its_sysctl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysctls, "sysctl_path", lambda name: Path("/dev/full"))
    with pytest.raises(sysctls.GuestError, match=r"^the kernel refuses sysctl net\.x = '0': No space left on device$"):
        sysctls.write_sysctl("net.x", "0")
