# SPDX-License-Identifier: Apache-2.0
"""A disk with Debian 12, systemd, SSH and GRUB, as a rented machine has one, built once without any virtual machine.

Owns the content of the disk and the way GRUB gets onto it. Who the machine is, a second disk tells it: a tar archive
with authorized_keys and the host key, whose serial number is longfat-seed. Needs root, which owns the disk's files.
"""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import tempfile
from pathlib import Path

from longfat.builds.apt_sources import configured_sources, source_lines
from longfat.cache import cache_folder

SUITE = "bookworm"
PACKAGES = (
    "ethtool,grub-pc,initramfs-tools,iperf,iproute2,irqbalance,kmod,linux-image-cloud-amd64,nftables,openssh-server,"
    "procps,python3,python3-apt,systemd-sysv,tcpdump,udev,zstd"
)
# What the roles are to install: in apt's own cache, since the machine reaches no archive.
FETCHED = "chrony mininet tcptrace"
SECTOR = 512
FIRST_SECTOR = 2048
DISK_MIB = 2048
GRUB_MODULES = "biosdisk part_msdos ext2 normal linux configfile search search_fs_uuid loadenv echo test sleep reboot"

CUSTOMIZE = r"""
set -eu
root=$1
chroot "$root" apt-get clean
chroot "$root" apt-get --quiet=2 --yes --no-install-recommends --download-only install FETCHED
# An initial file system for a new kernel would take the emulated processor minutes, and the project's needs none.
rm "$root/etc/kernel/postinst.d/initramfs-tools"
rm -f "$root"/etc/ssh/ssh_host_* "$root/etc/resolv.conf"
echo node >"$root/etc/hostname"
echo '127.0.0.1 localhost node' >"$root/etc/hosts"
echo '/dev/vda1 / ext4 errors=remount-ro 0 1' >"$root/etc/fstab"
printf '[Match]\nDriver=virtio_net\n[Network]\nDHCP=ipv4\n' >"$root/etc/systemd/network/80-ssh.network"
chroot "$root" systemctl --quiet enable systemd-networkd.service
chroot "$root" systemctl --quiet mask systemd-networkd-wait-online.service apt-daily.timer apt-daily-upgrade.timer

cat >"$root/usr/local/sbin/seed" <<'SEED'
#!/bin/sh -eu
mkdir -p -m 700 /root/.ssh /run/seed
tar --extract --file=/dev/disk/by-id/virtio-longfat-seed --directory=/run/seed
install -m 600 /run/seed/authorized_keys /root/.ssh/authorized_keys
install -m 600 /run/seed/ssh_host_ed25519_key /etc/ssh/
install -m 644 /run/seed/ssh_host_ed25519_key.pub /etc/ssh/
SEED
chmod 755 "$root/usr/local/sbin/seed"
cat >"$root/etc/systemd/system/seed.service" <<'UNIT'
[Unit]
Before=ssh.service
After=systemd-udev-settle.service
Wants=systemd-udev-settle.service
[Service]
Type=oneshot
ExecStart=/usr/local/sbin/seed
[Install]
WantedBy=multi-user.target
UNIT
chroot "$root" systemctl --quiet enable seed.service

cat >"$root/etc/default/grub" <<'GRUB'
GRUB_DEFAULT=0
GRUB_TIMEOUT=1
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX="console=ttyS0 net.ifnames=1"
GRUB_TERMINAL=serial
GRUB
mkdir -p "$root/boot/grub/i386-pc"
cp "$root"/usr/lib/grub/i386-pc/*.mod "$root"/usr/lib/grub/i386-pc/*.lst "$root/boot/grub/i386-pc/"
chroot "$root" grub-mkimage --format=i386-pc --prefix='(hd0,msdos1)/boot/grub' \
    --output=/boot/grub/i386-pc/core.img MODULES
chroot "$root" grub-editenv /boot/grub/grubenv create
# The first menu is written by hand, in the form of grub-mkconfig, which has to be on the machine.
kernel=$(cd "$root/boot" && ls vmlinuz-*)
cat >"$root/boot/grub/grub.cfg" <<MENU
set timeout=0
menuentry 'Debian' \$menuentry_id_option 'gnulinux-simple' {
    linux /boot/$kernel root=/dev/vda1 ro console=ttyS0
    initrd /boot/initrd.img-${kernel#vmlinuz-}
}
MENU
"""


def debian_disk() -> Path:
    """The disk in the cache folder, built now (about two minutes) unless it is there."""
    recipe = hashlib.sha256(repr((SUITE, PACKAGES, FETCHED, DISK_MIB, GRUB_MODULES, CUSTOMIZE)).encode()).hexdigest()[
        :16
    ]
    disk = cache_folder() / "test-disks" / f"debian-{recipe}.raw"
    if not disk.exists():
        disk.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".disk-", dir=disk.parent) as scratch:
            _build(Path(scratch)).rename(disk)
    return disk


def _build(folder: Path) -> Path:
    root, part, disk = folder / "root", folder / "part", folder / "disk"
    customize = folder / "customize"
    customize.write_text("#!/bin/sh\n" + CUSTOMIZE.replace("FETCHED", FETCHED).replace("MODULES", GRUB_MODULES))
    customize.chmod(0o755)
    _run(
        *("mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory", f"--include={PACKAGES}"),
        *("--skip=cleanup/apt/lists", "--skip=cleanup/apt/cache"),
        f"--customize-hook={customize} $1",
        *(SUITE, str(root), *source_lines(SUITE, configured_sources())),
    )
    sectors = DISK_MIB * 2048 - FIRST_SECTOR
    with part.open("wb") as file:
        file.truncate(sectors * SECTOR)
    # Without features that GRUB 2.06 does not read.
    _run("mke2fs", "-q", "-t", "ext4", "-O", "^metadata_csum_seed,^orphan_file", "-d", str(root), str(part))
    boot = (root / "usr/lib/grub/i386-pc/boot.img").read_bytes()
    core = (root / "boot/grub/i386-pc/core.img").read_bytes()
    assert len(core) < (FIRST_SECTOR - 1) * SECTOR
    with disk.open("wb") as file:
        file.write(boot_sector(boot, FIRST_SECTOR, sectors) + core)
    _run("dd", f"if={part}", f"of={disk}", f"seek={FIRST_SECTOR}", f"bs={SECTOR}", "conv=sparse,notrunc", "status=none")
    os.truncate(disk, DISK_MIB << 20)
    return disk


def boot_sector(boot: bytes, first: int, sectors: int) -> bytes:
    """GRUB's boot sector with one partition of Linux; the core image follows in the next sector, as it expects."""
    code = bytearray(boot[:440].ljust(SECTOR, b"\0"))
    code[0x66:0x68] = b"\x90\x90"  # no check for a floppy, as grub-bios-setup does it for a disk
    entry = struct.pack("<B3sB3sII", 0x80, b"\xfe\xff\xff", 0x83, b"\xfe\xff\xff", first, sectors)
    code[440:444] = b"LFAT"
    code[446:462] = entry
    code[510:512] = b"\x55\xaa"
    return bytes(code)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)[:300]}\n{done.stderr[-3000:]}")
