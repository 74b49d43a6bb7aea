# SPDX-License-Identifier: Apache-2.0
"""Build targets of a kernel: the executable of a guest, or a Debian package for x86-64 machines.

Owns the differences between the two, and the content of a guest's kit. Must not touch the cache folder.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PACKAGE_EPOCH = "1735689600"
"""2025-01-01T00:00:00Z, as for the image: nothing in a package shows the time of its build."""
BUILDER = {"KBUILD_BUILD_USER": "longfat", "KBUILD_BUILD_HOST": "longfat"}

KIT = "kit.tar.gz"
"""The parts of a guest's kernel for linking it again with further C files (``own_kernel``)."""
_KIT_HEADERS = ("include", "arch/um/include", "arch/x86/include", "arch/x86/um", "net/ipv4")
_KIT_FILES = ("vmlinux.o", "init/version-timestamp.o", "arch/um/kernel/vmlinux.lds", "flags", "command")
_NO_GUEST_HAS = ("dt-bindings", "drm", "media", "sound")  # a third of all headers
# The first make starts another one, with the architecture's variables.
_PRINT_FLAGS = """
ifeq ($(need-sub-make),)
longfat-flags:
	@echo '$(CFLAGS_vmlinux)' >flags
endif
"""

Run = Callable[..., None]  # a command's arguments, then environment variables by name


@dataclass(frozen=True)
class Target:
    """A kind of kernel. ``name`` is also the folder of its fragments, ``arch`` Kbuild's name of the architecture.

    ``defaults`` is Kbuild's goal for options that no fragment names, ``what`` a text for users. ``kind`` names the
    result and ``product`` is a pattern of its file name. ``packages`` names a list of Debian packages that the build
    needs in addition. ``compile`` is called with a runner of commands, the command ``make``, the configured tree, the
    source's release and the kernel's digest, and returns the files of the result.
    """

    name: str
    arch: str
    defaults: str
    what: str
    kind: str
    product: str
    packages: str | None
    compile: Callable[[Run, list[str], Path, str, str], list[Path]]


def _compile_guest(run: Run, make: list[str], tree: Path, version: str, digest: str) -> list[Path]:
    """Build the executable of User-Mode Linux, with the names of its functions, and its kit."""
    run([*make, "linux"], KBUILD_BUILD_TIMESTAMP="@0", **BUILDER)
    run(["strip", "--strip-debug", "linux"])
    # The command that compiled one file of TCP serves for others.
    command = (tree / "net/ipv4/.tcp_cong.o.cmd").read_text().splitlines()[0].split(":=", 1)[1]
    (tree / "command").write_text(command.replace(r"\#", "#").replace("$$", "$"))
    with (tree / "Makefile").open("a") as makefile:
        makefile.write(_PRINT_FLAGS)
    run([*make, "longfat-flags"], KBUILD_BUILD_TIMESTAMP="@0", **BUILDER)
    run(["strip", "--strip-debug", "vmlinux.o"])
    with tarfile.open(tree / KIT, "w:gz", compresslevel=1) as tar:
        for name in _KIT_FILES:
            tar.add(tree / name, name)
        for name in _KIT_HEADERS:
            tar.add(tree / name, name, filter=_headers)
    return [tree / "linux", tree / KIT]


def _headers(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    unused = any(part in _NO_GUEST_HAS for part in Path(member.name).parts)
    header = member.isdir() or member.issym() or member.name.endswith((".h", ".inc"))
    return member if header and not unused else None


def _compile_package(run: Run, make: list[str], tree: Path, version: str, digest: str) -> list[Path]:
    """Build the package with image and modules, without packages of headers, which nothing here uses.

    Its release ends with the first digits of the digest: packages of two series can be installed side by side, and
    ``uname -r`` shows which one runs.
    """
    run(["sed", "-i", f"s/date -R/date -R -u -d @{PACKAGE_EPOCH}/", "scripts/package/mkdebian"])
    run(
        [*make, "bindeb-pkg", "DPKG_FLAGS=--no-check-builddeps --rules-target=binary-image"],
        **BUILDER,
        LOCALVERSION=f"-{digest[:8]}",
        KBUILD_BUILD_TIMESTAMP=f"@{PACKAGE_EPOCH}",
        SOURCE_DATE_EPOCH=PACKAGE_EPOCH,
        KDEB_PKGVERSION=f"{version}-1",
        KDEB_CHANGELOG_DIST="bookworm",
        DEBFULLNAME="Longfat",
        DEBEMAIL="longfat@localhost",
    )
    return list(tree.parent.glob("linux-image-*.deb"))


GUEST = Target(
    name="um",
    arch="um",
    defaults="allnoconfig",
    what="guest kernel (about two minutes on two cores)",
    kind="executable",
    product="linux",
    packages=None,
    compile=_compile_guest,
)
X86_64 = Target(
    name="x86-64",
    arch="x86_64",
    defaults="alldefconfig",
    what="x86-64 package (about nine minutes on two cores)",
    kind="package",
    product="linux-image-*.deb",
    packages="packages-x86-64.txt",
    compile=_compile_package,
)
TARGETS = {target.name: target for target in (GUEST, X86_64)}
