#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Last step inside the machine's new root: customize.sh ROOT, run by mmdebstrap as root.
# FETCHED and GRUB_MODULES name packages and modules, with blanks between them.
set -eu
root=$1
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)

chroot "$root" apt-get clean
# shellcheck disable=SC2086 # one word for each package
chroot "$root" apt-get --quiet=2 --yes --no-install-recommends --download-only install $FETCHED
# An initial file system for a new kernel would take an emulated processor minutes, and the project's needs none.
rm "$root/etc/kernel/postinst.d/initramfs-tools"

# Nothing of the machine that builds it, nor what each machine has of its own.
rm -f "$root"/etc/ssh/ssh_host_* "$root/etc/resolv.conf"
find "$root/var/log" -type f -delete
: >"$root/etc/machine-id"
echo node >"$root/etc/hostname"
echo '127.0.0.1 localhost node' >"$root/etc/hosts"
echo '/dev/vda1 / ext4 errors=remount-ro 0 1' >"$root/etc/fstab"

cp -r --preserve=mode "$here/root/." "$root"
chroot "$root" systemctl --quiet enable systemd-networkd.service seed.service
chroot "$root" systemctl --quiet mask systemd-networkd-wait-online.service apt-daily.timer apt-daily-upgrade.timer

mkdir -p "$root/boot/grub/i386-pc"
cp "$root"/usr/lib/grub/i386-pc/*.mod "$root"/usr/lib/grub/i386-pc/*.lst "$root/boot/grub/i386-pc/"
# shellcheck disable=SC2086 # one word for each module
chroot "$root" grub-mkimage --format=i386-pc --prefix='(hd0,msdos1)/boot/grub' \
    --output=/boot/grub/i386-pc/core.img $GRUB_MODULES
chroot "$root" grub-editenv /boot/grub/grubenv create
# The first menu is written by hand, in the form of grub-mkconfig, which has to be on the machine.
kernel=$(cd "$root/boot" && echo vmlinuz-*)
cat >"$root/boot/grub/grub.cfg" <<MENU
set timeout=0
menuentry 'Debian' \$menuentry_id_option 'gnulinux-simple' {
    linux /boot/$kernel root=/dev/vda1 ro console=ttyS0
    initrd /boot/initrd.img-${kernel#vmlinuz-}
}
MENU
