#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Print a line "reason: ..." for every reason against preparing this machine. Changes nothing.
#
# RELEASES: releases of Debian whose programs have the stated versions. ADDRESS: where SSH reaches this machine. KERNEL:
# the release of the kernel to be booted, or nothing. MODULES: the modules of that kernel, built in or not. CARDS: MAC
# addresses and places on the PCI bus of the links' cards.
set -u

efi=${EFI:-/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c}
sys=${SYS:-/sys}
room_kib=${ROOM_KIB:-153600}

# shellcheck disable=SC1090 # the file is the machine's
release=$(. "${OS_RELEASE:-/etc/os-release}" && echo "${VERSION_CODENAME:-unknown}")
case " $RELEASES " in
    *" $release "*) ;;
    *) echo "reason: its release is $release; the programs' versions are those of $RELEASES" ;;
esac

command -v apt-get >/dev/null || echo "reason: it has no apt, which installs the programs"
[ -d "${SYSTEMD:-/run/systemd/system}" ] || echo "reason: its first process is not systemd, which starts the services"

if command -v cloud-init >/dev/null; then
    case $(cloud-init status 2>/dev/null) in
        *running* | *"not run"*) echo "reason: its first boot has not ended (cloud-init status): wait, and repeat" ;;
    esac
fi

card=$(ip -o -4 addr show 2>/dev/null | awk -v at="$ADDRESS" '{ split($4, a, "/"); if (a[1] == at) print $2 }')
[ -n "$card" ] || card=$(ip -o route show default 2>/dev/null | awk '{ for (i = 1; i < NF; i++) if ($i == "dev") print $(i + 1); exit }')

# Whether a network interface has a MAC address or place on the PCI bus.
is_card() {
    [ "$(cat "$sys/class/net/$1/address" 2>/dev/null)" = "$2" ] ||
        [ "$(basename "$(readlink -f "$sys/class/net/$1/device")")" = "$2" ]
}

for id in $CARDS; do
    ! is_card "$card" "$id" || echo "reason: the card of a link ($id) is that of SSH ($card), which a run takes away"
done

[ -n "$KERNEL" ] && [ "$(uname -r)" != "$KERNEL" ] || exit 0

command -v update-grub >/dev/null || echo "reason: it has no GRUB, which falls back on the present kernel if $KERNEL fails"

case $ADDRESS in
    *:*) echo "reason: SSH reaches it by IPv6 ($ADDRESS), which the kernel $KERNEL lacks: state its IPv4 address" ;;
esac

if [ -r "$efi" ] && [ "$(od -An -tu1 -j4 -N1 "$efi" | tr -d ' ')" = 1 ]; then
    echo "reason: Secure Boot is on, and the kernel $KERNEL is not signed: turn it off in the firmware"
fi

for service in docker firewalld ufw; do
    if [ "$(systemctl is-active "$service" 2>/dev/null)" = active ]; then
        echo "reason: $service is active, and would have no effect under $KERNEL: stop and disable it"
    fi
done
if command -v nft >/dev/null && nft list tables 2>/dev/null | grep -q '^table inet '; then
    echo "reason: nftables has tables of the family inet, which $KERNEL lacks: use ip and ip6 (nft list tables)"
fi
if [ -s "${IP_TABLES:-/proc/net/ip_tables_names}" ]; then
    echo "reason: iptables has rules, which $KERNEL cannot load: use nftables with tables of the family ip"
fi

# The driver of a device is the module of the nearest ancestor that has one.
module_of() {
    device=$(readlink -f "$1") || return 0
    while [ "$device" != / ] && [ "$device" != "$sys" ]; do
        if [ -e "$device/driver/module" ]; then
            basename "$(readlink -f "$device/driver/module")"
            return
        fi
        device=$(dirname "$device")
    done
}

need_driver() {
    module=$(module_of "$2")
    case " $MODULES " in
        *" $module "*) ;;
        *) [ -z "$module" ] || echo "reason: the kernel $KERNEL has no driver $module, which the $1 needs" ;;
    esac
}

[ -z "$card" ] || need_driver "card of SSH ($card)" "$sys/class/net/$card/device"
for id in $CARDS; do
    for net in "$sys"/class/net/*; do
        ! is_card "$(basename "$net")" "$id" || need_driver "card of a link ($id)" "$net/device"
    done
done
root=$(findmnt -no SOURCE / 2>/dev/null)
case $root in
    /dev/*) need_driver "disk of / ($root)" "$sys/class/block/$(basename "$(readlink -f "$root")")" ;;
esac

free_kib=$(df --output=avail -k /boot 2>/dev/null | tail -n 1 | tr -d ' ')
if [ -n "$free_kib" ] && [ "$free_kib" -lt "$room_kib" ]; then
    echo "reason: /boot has $((free_kib / 1024)) MiB free, and a kernel needs $((room_kib / 1024)) MiB"
fi
exit 0
