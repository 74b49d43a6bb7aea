# SPDX-License-Identifier: Apache-2.0
"""The look at a machine before anything is changed there: every reason, and none too many; its entries of GRUB."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from grub_entries import grub_entry

ANSIBLE = Path(__file__).resolve().parents[2] / "infra/ansible"
LOOK = ANSIBLE / "roles/preflight/files/look.sh"
KERNEL = "6.12-longfat-abc"
# Programs of a machine without any fault; None is a program that is missing.
SOUND: dict[str, str | None] = {
    "uname": "echo 6.1.0-old",
    "systemctl": "echo inactive",
    "nft": "echo table ip longfat",
    "cloud-init": "echo status: done",
    "ip": "echo '2: eth0 inet 192.0.2.7/24 brd 192.0.2.255'",
    "findmnt": "echo overlay",
    "df": "printf 'Avail\\n999999\\n'",
    "apt-get": "true",
    "update-grub": "true",
}

TOOLS = ("awk", "basename", "cat", "dirname", "grep", "od", "readlink", "tail", "tr")


def reasons(folder: Path, programs: dict[str, str | None], **changes: str) -> list[str]:
    """Return the reasons against a sound machine with other ``programs`` and variables."""
    for name, body in (SOUND | programs).items():
        if body is not None:
            (folder / name).write_text(f"#!/bin/sh\n{body}\n")
            (folder / name).chmod(0o755)
    (folder / "tools").mkdir()
    for name in TOOLS:
        (folder / "tools" / name).symlink_to(Path("/usr/bin") / name)
    (folder / "release").write_text("VERSION_CODENAME=bookworm\n")
    driver = folder / "sys/class/net/eth0/device/driver"
    driver.mkdir(parents=True)
    (folder / "sys/module/igc").mkdir(parents=True)
    (driver / "module").symlink_to(folder / "sys/module/igc")
    (driver.parents[1] / "address").write_text("02:00:00:00:00:07\n")
    link = folder / "sys/class/net/eth1"
    (folder / "sys/bus/0000:01:00.0/driver").mkdir(parents=True)
    (folder / "sys/bus/0000:01:00.0/driver/module").symlink_to(folder / "sys/module/igc")
    link.mkdir()
    (link / "device").symlink_to(folder / "sys/bus/0000:01:00.0")
    (link / "address").write_text("02:00:00:00:00:08\n")
    (folder / "efi").write_bytes(bytes([6, 0, 0, 0, int(changes.pop("SECURE", "0"))]))
    (folder / "tables").write_text(changes.pop("TABLES", ""))
    variables = {"ADDRESS": "192.0.2.7", "KERNEL": KERNEL, "MODULES": "virtio_net igc", "RELEASES": "bookworm"}
    variables |= {"CARDS": "0000:01:00.0"}
    files = {"OS_RELEASE": f"{folder}/release", "EFI": f"{folder}/efi", "IP_TABLES": f"{folder}/tables"}
    environment = {
        "PATH": f"{folder}:{folder}/tools",
        "SYSTEMD": str(folder),
        "SYS": f"{folder}/sys",
        **files,
        **variables,
        **changes,
    }
    done = subprocess.run([LOOK], env=environment, capture_output=True, text=True, check=True)
    assert all(line.startswith("reason: ") for line in done.stdout.splitlines())
    return done.stdout.splitlines()


def test_a_sound_machine_gives_no_reason(tmp_path: Path) -> None:
    assert reasons(tmp_path, {}) == []


@pytest.mark.parametrize(
    ("programs", "changes", "word"),
    [
        ({}, {"RELEASES": "trixie"}, "bookworm"),
        ({"apt-get": None}, {}, "no apt"),
        ({}, {"SYSTEMD": "/nowhere"}, "systemd"),
        ({"update-grub": None}, {}, "no GRUB"),
        ({"cloud-init": "echo status: running"}, {}, "first boot"),
        ({}, {"ADDRESS": "2001:db8::7"}, "IPv4"),
        ({}, {"SECURE": "1"}, "Secure Boot"),
        ({"systemctl": '[ "$2" = ufw ] && echo active || echo inactive'}, {}, "ufw"),
        ({"nft": "echo table inet filter"}, {}, "inet"),
        ({}, {"TABLES": "filter\n"}, "iptables"),
        ({}, {"MODULES": "virtio_net e1000e", "CARDS": ""}, "no driver igc, which the card of SSH"),
        ({"ip": "true"}, {"MODULES": "virtio_net e1000e"}, "no driver igc, which the card of a link"),
        ({}, {"CARDS": "02:00:00:00:00:08 02:00:00:00:00:07"}, "(02:00:00:00:00:07) is that of SSH (eth0)"),
        ({"df": "printf 'Avail\\n40960\\n'"}, {}, "40 MiB"),
    ],
)
def test_each_fault_is_the_only_reason(
    tmp_path: Path, programs: dict[str, str | None], changes: dict[str, str], word: str
) -> None:
    (line,) = reasons(tmp_path, programs, **changes)
    assert word in line


def test_a_machine_with_the_kernel_already_has_nothing_to_lose(tmp_path: Path) -> None:
    assert reasons(tmp_path, {"uname": f"echo {KERNEL}", "nft": "echo table inet filter"}, SECURE="1") == []


def test_a_kernel_is_booted_after_the_look_and_the_programs_and_before_the_packet_filter() -> None:
    play, workers, _ = yaml.safe_load((ANSIBLE / "site.yml").read_text())
    roles = [
        task["ansible.builtin.import_role"]["name"] for task in play["tasks"] if "ansible.builtin.import_role" in task
    ]
    assert roles[:4] == ["preflight", "traffic_tools", "kernel_booted", "packet_filter"]
    names = [task["name"] for task in workers["tasks"]]
    assert names.index("Wait for the end of the first boot") < names.index("Packet filter") < names.index("Worker")


MENU = (Path(__file__).parents[1] / "data/grub-2.06-two-kernels.cfg").read_text()
DISK = "e188d140-578d-4a89-9af9-5e9c859be63d"
RELEASE = "6.1.0-56-cloud-amd64"
NEWEST = "6.12.117-longfat-4f99f75a"

FLAT = f"""
menuentry 'Debian GNU/Linux, with Linux 6.12.1' --class os $menuentry_id_option 'gnulinux-6.12.1-advanced-{DISK}' {{
\tlinux\t/vmlinuz-6.12.1 root=/dev/vda1 ro
\tinitrd\t/initrd.img-6.12.1
}}
menuentry 'UEFI Firmware Settings' $menuentry_id_option 'uefi-firmware' {{
\tfwsetup
}}
"""


def test_the_entry_is_the_one_in_the_submenu_with_the_submenu_before_it() -> None:
    for release in (RELEASE, NEWEST):
        assert grub_entry(MENU, release) == f"gnulinux-advanced-{DISK}>gnulinux-{release}-advanced-{DISK}"


def test_a_release_that_another_one_begins_with_is_not_that_one() -> None:
    assert grub_entry(MENU, "6.1.0-56") == ""
    assert grub_entry(MENU, "6.12.1") == grub_entry("", RELEASE) == ""


def test_a_menu_without_submenus_and_with_a_partition_for_boot_is_read_as_well() -> None:
    assert grub_entry(FLAT, "6.12.1") == f"gnulinux-6.12.1-advanced-{DISK}"
