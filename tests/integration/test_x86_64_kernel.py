# SPDX-License-Identifier: Apache-2.0
"""The x86-64 package: its content, and its kernel in a virtual machine, which needs no KVM."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from qemu import ask, unpack

from longfat.builds.image import build_image
from longfat.builds.kernel import KernelBuild, build_kernel
from longfat.builds.kernel_recipe import KERNELS_FOLDER
from longfat.builds.kernel_targets import PACKAGE_EPOCH, X86_64
from longfat.builds.packages import missing_packages
from longfat.study.catalog.ccas import CCAS

pytestmark = pytest.mark.qemu

FLOW_BYTES = 1_000_000
# Messages of modules that look for their device when they are loaded; the device of ptp_kvm is a hypervisor.
NO_DEVICE = {"No such device"}
NO_KVM = {"kernel/drivers/ptp/ptp_kvm.ko": "Operation not supported"}


@pytest.fixture(scope="module")
def kernel() -> KernelBuild:
    """The package from the cache folder, or built now."""
    missing = missing_packages((KERNELS_FOLDER / "packages-x86-64.txt").read_text(), wanted=True)
    if missing and "CI" not in os.environ:
        pytest.skip(f"missing: {', '.join(missing)} (kernels/packages-x86-64.txt)")
    assert missing == []
    return build_kernel(X86_64)


@pytest.fixture(scope="module")
def facts(kernel: KernelBuild) -> dict[str, str]:
    return dict(json.loads((kernel.path.parent / "kernel.json").read_text()))


@pytest.fixture(scope="module")
def unpacked(kernel: KernelBuild, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(kernel.path, tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def answer(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Answers of a virtual machine with that kernel."""
    question = {"ccas": list(CCAS), "flow_bytes": FLOW_BYTES}
    given = ask(unpacked, build_image().path, question, tmp_path_factory.mktemp("machine"))
    assert "error" not in given, given["error"]
    return given


def field(package: Path, name: str) -> str:
    return subprocess.run(
        ["dpkg-deb", "--field", package, name], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_package_is_named_after_the_release_and_needs_no_other(kernel: KernelBuild, facts: dict[str, str]) -> None:
    assert facts["release"] == f"{kernel.version}-longfat-{kernel.digest[:8]}"
    assert field(kernel.path, "Package") == f"linux-image-{facts['release']}"
    assert field(kernel.path, "Architecture") == "amd64"
    assert field(kernel.path, "Version") == f"{kernel.version}-1"
    assert field(kernel.path, "Depends") == ""


def test_nothing_in_the_package_tells_when_it_was_built(kernel: KernelBuild) -> None:
    content = subprocess.run(["dpkg-deb", "--fsys-tarfile", kernel.path], stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        times = {member.name: member.mtime for member in tar}
    assert len(times) > 50
    late = [name for name, time in times.items() if time > int(PACKAGE_EPOCH)]
    assert late == []


def test_the_machine_runs_the_kernel_and_needs_no_module_for_its_disks(
    answer: dict[str, Any], facts: dict[str, str]
) -> None:
    assert answer["release"] == facts["release"]
    assert {"vda", "sda", "nvme0n1"} <= set(answer["disks"])
    assert answer["built_in_cards"] == ["e1000", "e1000e", "virtio_net"]


def test_every_module_loads_and_a_card_starts_with_its_own(answer: dict[str, Any]) -> None:
    assert len(answer["modules"]) > 30
    refused = {name: said for name, said in answer["modules"].items() if said and said not in NO_DEVICE}
    assert refused == NO_KVM
    assert "vmxnet3" in answer["cards"]


@pytest.mark.parametrize("cca", CCAS)
def test_a_flow_moves_its_bytes_past_losses_under_the_algorithm_it_asked_for(answer: dict[str, Any], cca: str) -> None:
    flow = answer["flows"][cca]
    assert (flow.get("cca"), flow.get("received")) == (cca, FLOW_BYTES), flow
    assert flow["retransmissions"] > 0  # of 690 packets: none lost in one start of 10^9
