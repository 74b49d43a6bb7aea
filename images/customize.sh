# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Last step of the build, run by mmdebstrap as root of the new userland, whose folder is $1.
# It is passed as text, not as a file: in a user namespace the checkout may be unreadable.
set -eu
root=$1

# Empty folders that the guest mounts something on.
mkdir -p "$root/task" "$root/code" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/run"
rm -rf "$root"/run/*

# What only the set-up of the packages needed: the full Perl (perl-base, which dpkg needs, stays), and
# Python's installer, translator and help texts.
rm -rf "$root"/usr/lib/*/perl "$root"/usr/lib/*/libperl.so* "$root/usr/share/perl" "$root/usr/share/perl5"
rm -rf "$root/usr/lib/python3.11/ensurepip" "$root/usr/lib/python3.11/lib2to3" "$root/usr/lib/python3.11/pydoc_data"

# Nothing of the machine that builds the image, and nothing that changes with the day.
# (mmdebstrap itself empties apt's folders after this step, and wants them there.)
rm -rf "$root"/etc/apt/sources.list* "$root"/var/log/* "$root/var/cache/debconf" "$root/var/cache/ldconfig"
rm -f "$root/etc/resolv.conf" "$root/etc/dpkg/dpkg.cfg.d/99mmdebstrap"
find "$root/var/lib/dpkg" -name '*-old' -delete
: >"$root/etc/resolv.conf"
: >"$root/etc/machine-id"
echo longfat >"$root/etc/hostname"
echo '127.0.0.1 localhost' >"$root/etc/hosts"

# A name lookup never waits for a name server: in virtual time each would take its full time-out.
sed -i 's/^hosts:.*/hosts: files/' "$root/etc/nsswitch.conf"

# Bytecode that Python never compares with its source: the guest starts faster and never compiles.
find "$root/usr/lib/python3" "$root/usr/lib/python3.11" "$root/usr/share/python3" -name __pycache__ -prune -exec rm -rf {} +
chroot "$root" env PYTHONHASHSEED=0 python3 -m compileall -q -f \
    --invalidation-mode unchecked-hash /usr/lib/python3.11 /usr/lib/python3
