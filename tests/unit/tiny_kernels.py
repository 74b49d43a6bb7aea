# SPDX-License-Identifier: Apache-2.0
"""A folder like ``kernels/`` with a source of two files, and stubs of make and strip. Nothing is compiled."""

from __future__ import annotations

import hashlib
import os
import tarfile
from pathlib import Path

import pytest

from longfat.study.catalog.kernels import DEFAULT_KERNEL

NAME = DEFAULT_KERNEL
VERSION = "6.12.117"
PATCH = """\
Subject: [PATCH] a line more

diff --git a/tcp.c b/tcp.c
--- a/tcp.c
+++ b/tcp.c
@@ -1 +1,2 @@
 one
+two
"""
# The configuration is the given options except for LOST; the product shows the patched source.
MAKE = """\
#!/bin/sh
echo "$@" >>{log}
for word; do case $word in
all*config) grep -v "${{LOST:-nothing is lost}}" "$KCONFIG_ALLCONFIG" >.config ;;
linux) file=linux ;;
longfat-flags) touch flags ;;
bindeb-pkg) file=../linux-image-$KDEB_PKGVERSION.deb ;;
esac; done
test -n "$file" || exit 0
echo "error: no such thing" >&2
mkdir -p include/config
echo "release$LOCALVERSION" >include/config/kernel.release
cp tcp.c vmlinux.o
mkdir -p init include arch/um/include arch/um/kernel arch/x86/include arch/x86/um net/ipv4
touch init/version-timestamp.o arch/um/kernel/vmlinux.lds
echo 'savedcmd_net/ipv4/tcp_cong.o := gcc -c net/ipv4/tcp_cong.c' >net/ipv4/.tcp_cong.o.cmd
test ! -e {log}.broken && cat tcp.c >$file
"""


def tiny_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder like ``kernels/`` for a tiny source, an empty cache folder, and stubs with a log."""
    folder = tmp_path / "kernels"
    own = folder / NAME
    for name in ("config", "patches", f"{NAME}/config/um", f"{NAME}/config/x86-64"):
        (folder / name).mkdir(parents=True)
    (folder / "series").write_text("0001-a-line.patch\n")
    (folder / "patches/0001-a-line.patch").write_text(PATCH)
    (folder / "config/a.config").write_text("CONFIG_NET=y\n# CONFIG_SMP is not set\n")
    (own / "config/um/b.config").write_text("CONFIG_TCP_CONG_BIC=y\n")
    (own / "config/x86-64/c.config").write_text("CONFIG_PCI=y\n")
    (folder / "packages-x86-64.txt").write_text("dash sh # why\nqemu ?nonesuch-qemu # a test\n")
    pack(tmp_path, VERSION)
    settings(folder, distribution_tarball=str(tmp_path / f"linux-{VERSION}.tar"))
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "make").write_text(MAKE.format(log=tmp_path / "log"))
    (programs / "strip").write_text("#!/bin/sh\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("LONGFAT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LONGFAT_ARCHIVE", raising=False)
    return folder


def pack(folder: Path, version: str, makefile: str = "Makefile") -> Path:
    """Make an uncompressed kernel source tarball in ``folder``."""
    tree = folder / f"linux-{version}"
    tree.mkdir()
    numbers = zip(("VERSION", "PATCHLEVEL", "SUBLEVEL"), version.split("."), strict=True)
    (tree / makefile).write_text("".join(f"{name} = {number}\n" for name, number in numbers) + "EXTRAVERSION =\n")
    (tree / "tcp.c").write_text("one\n")
    (tree / "scripts/package").mkdir(parents=True)
    (tree / "scripts/package/mkdebian").write_text("echo $(date -R)\n")
    path = folder / f"linux-{version}.tar"
    with tarfile.open(path, "w") as tar:
        tar.add(tree, tree.name)
    return path


def settings(folder: Path, **changes: str) -> dict[str, str]:
    """Write the kernel's ``source.toml`` below ``folder`` and return its settings."""
    values = {
        "series": "6.12",
        "pinned": VERSION,
        "sha256": " ".join(hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.parent.glob("linux-*.tar")),
        "distribution_tarball": "/nonexistent/linux.tar.xz",
        "url": (folder / "linux-{version}.tar").as_uri().replace("%7B", "{").replace("%7D", "}"),
        "sums_url": (folder / "sums").as_uri(),
        **changes,
    }
    (folder / NAME / "source.toml").write_text("".join(f'{key} = "{value}"\n' for key, value in values.items()))
    return values
