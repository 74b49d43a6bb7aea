# SPDX-License-Identifier: Apache-2.0
"""The roles of infra/ansible on a real machine: a virtual one with Debian, GRUB and systemd, without KVM.

The tests follow one machine through its life, in the order of this file.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from debian_machine import DebianMachine
from lab_requirements import packages, require_machines

from longfat.builds.disk import build_disk
from longfat.study.catalog.ccas import CCAS

pytestmark = pytest.mark.infra

INFRA = Path(__file__).resolve().parents[2] / "infra"
ANSIBLE = INFRA / "ansible"
WANTED = {
    "data_plane_mtu": 9000,
    "offloads_and_rings_features": {"gro": False, "tso": False},
    "offloads_and_rings_rings": {"rx": "max"},
    "tuning_persistent_irq_balance": "off",
    "time_synchronised_servers": ["192.168.127.1"],
    "time_synchronised_allow": ["10.0.0.0/16"],
}
BROKEN = "9.9.9-broken"


@pytest.fixture(scope="module")
def package() -> Path:
    """The newest x86-64 package in the cache folder: building one takes half an hour, for another test."""
    require_machines()
    return packages()[-1]


@pytest.fixture(scope="module")
def machine(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DebianMachine]:
    with DebianMachine(build_disk(), tmp_path_factory.mktemp("machine")) as started:
        started.write_inventory()
        started.wait()
        yield started


def play(machine: DebianMachine, kernel: Path, *options: str) -> tuple[dict[str, int], str]:
    """Prepare the machine: the recap's counts, and everything that was printed."""
    done = subprocess.run(
        [
            *(ANSIBLE / "provision", machine.folder / "inventory.json", machine.folder / "lab", "--limit", "router"),
            *(
                "--private-key",
                machine.key,
                "--extra-vars",
                json.dumps(WANTED | {"kernel_booted_package": str(kernel)}),
            ),
            *options,
        ],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"ANSIBLE_NOCOLOR": "1"},
    )
    output = done.stdout + done.stderr
    recap = re.search(r"^router +: (.*)$", output, re.MULTILINE)
    assert recap, output[-4000:]
    counts = {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", recap[1])}
    assert (done.returncode == 0) == (counts["failed"] == counts["unreachable"] == 0), output[-4000:]
    return counts, output


def release_of(package: Path) -> str:
    return package.name.removeprefix("linux-image-").split("_")[0]


def settings(machine: DebianMachine) -> dict[str, str]:
    """What the kernel says of what the roles set, whatever they wrote into files."""
    names = json.loads(machine.ask("longfat-nics find"))
    card = names["left"]
    return {
        "mtu": machine.ask(f"cat /sys/class/net/{card}/mtu"),
        "state": machine.ask(f"ip -o link show up dev {card} | wc -l"),
        "tso": machine.ask(f"ethtool -k {card} | grep ^tcp-segmentation-offload"),
        "gro": machine.ask(f"ethtool -k {card} | grep ^generic-receive-offload"),
        "rx": machine.ask(f"ethtool -g {card} | grep ^RX: | tail -1").split()[1],
        "arp": machine.ask("sysctl --values net.ipv4.conf.all.arp_announce"),
        "chrony": machine.ask("chronyc -n sources | grep -c 192.168.127.1"),
    }


SET = {
    "mtu": "9000",
    "state": "1",
    "tso": "tcp-segmentation-offload: off",
    "gro": "generic-receive-offload: off",
    "rx": "4096",
    "arp": "2",
    "chrony": "1",
}


def test_check_mode_passes_on_a_machine_that_nobody_prepared(machine: DebianMachine, package: Path) -> None:
    counts, output = play(machine, package, "--check")
    assert counts["failed"] == 0, output[-4000:]
    assert counts["changed"] > 0
    assert release_of(package) not in machine.ask("ls /boot")


def test_a_kernel_that_nobody_confirms_gives_way_to_the_old_one(machine: DebianMachine, package: Path) -> None:
    """As if the new kernel could not be reached: the play does not wait for it."""
    old = machine.ask("uname -r")
    hurry = {"kernel_booted_patience_s": 1, "kernel_booted_confirm_s": 30}

    counts, output = play(machine, package, "--extra-vars", json.dumps(hurry))

    assert counts["failed"] == 1
    assert "router did not come back within 1 s" in " ".join(output.split())
    machine.wait_for_kernels(release_of(package), old)
    assert machine.ask("uname -r") == old


def test_the_first_run_boots_the_kernel_and_sets_everything(machine: DebianMachine, package: Path) -> None:
    old = machine.ask("uname -r")
    counts, output = play(machine, package)
    assert counts["failed"] == 0, output[-6000:]
    assert machine.ask("uname -r") == release_of(package) != old
    assert settings(machine) == SET
    assert set(CCAS) <= set(machine.ask("sysctl --values net.ipv4.tcp_available_congestion_control").split())
    assert machine.ask("grub-editenv list | grep next_entry=. || true") == ""
    assert machine.ask("ls /etc/systemd/system | grep -c trial || true") == "0"


@pytest.mark.parametrize("options", [(), ("--check", "--diff")])
def test_a_further_run_changes_nothing(machine: DebianMachine, package: Path, options: tuple[str, ...]) -> None:
    counts, output = play(machine, package, *options)
    assert (counts["failed"], counts["changed"]) == (0, 0), output[-6000:]


def test_a_kernel_that_panics_gives_way_to_the_old_one(machine: DebianMachine, package: Path) -> None:
    """Debian's own kernel without its initial file system finds no root, and panics."""
    root = machine.folder / "broken"
    (root / "DEBIAN").mkdir(parents=True)
    control = (
        f"Package: linux-image-{BROKEN}\nVersion: 1\nArchitecture: amd64\nMaintainer: nobody\nDescription: panics\n"
    )
    (root / "DEBIAN/control").write_text(control)
    install = f"#!/bin/sh -e\ncp /boot/vmlinuz-*-cloud-amd64 /boot/vmlinuz-{BROKEN}\nupdate-grub\n"
    (root / "DEBIAN/postinst").write_text(install)
    (root / "DEBIAN/postinst").chmod(0o755)
    broken = machine.folder / f"linux-image-{BROKEN}_1_amd64.deb"
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", root, broken], check=True, capture_output=True)
    entry = machine.ask("grub-editenv list | grep ^saved_entry=")

    counts, output = play(machine, broken)

    assert counts["failed"] == 1
    message = " ".join(output.split())
    assert (
        f"router did not come up under {BROKEN}: it runs {release_of(package)} again, which stays its default"
        in message
    )
    assert "Kernel panic" in machine.console.read_text(errors="replace")
    assert machine.ask("grub-editenv list | grep ^saved_entry=") == entry
    assert machine.ask("ls /etc/systemd/system | grep -c trial || true") == "0"
    assert settings(machine) == SET, "also after a start"
