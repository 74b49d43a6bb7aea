# SPDX-License-Identifier: Apache-2.0
"""The filter that finds a kernel's entry in GRUB's menu."""

from __future__ import annotations

from pathlib import Path

from grub_entries import grub_entry

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
