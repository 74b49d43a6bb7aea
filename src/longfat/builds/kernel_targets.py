# SPDX-License-Identifier: Apache-2.0
"""The targets built from the kernel's source: the guest's kernel, or a Debian package for x86-64 machines.

Owns the differences between the two. Must not touch the cache folder, nor decide a kernel's content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# 2025-01-01T00:00:00Z, also the day of the image: nothing in a package shows when it was built.
PACKAGE_EPOCH = "1735689600"
BUILDER = {"KBUILD_BUILD_USER": "longfat", "KBUILD_BUILD_HOST": "longfat"}

Run = Callable[..., None]  # a command's arguments, then environment variables by name


@dataclass(frozen=True)
class Target:
    """One thing to build. ``name`` is also the folder with the fragments that only it has.

    ``arch`` is Kbuild's name of the architecture, ``defaults`` its goal for options that no fragment names; ``what``
    tells a user what is built and how long it takes. ``kind`` names the result, ``product`` is its file name or a
    pattern of it. ``packages`` lists the Debian packages that it needs beyond packages.txt, in a file next to the
    series. ``compile`` is called with a runner of commands, the command ``make``, the configured tree, the source's
    release and the kernel's digest; it returns the file that was made.
    """

    name: str
    arch: str
    defaults: str
    what: str
    kind: str
    product: str
    packages: str | None
    compile: Callable[[Run, list[str], Path, str, str], Path]


def _compile_guest(run: Run, make: list[str], tree: Path, version: str, digest: str) -> Path:
    """Build the executable of User-Mode Linux; it keeps the names of its functions, for reports of crashes."""
    run([*make, "linux"], KBUILD_BUILD_TIMESTAMP="@0", **BUILDER)
    run(["strip", "--strip-debug", "linux"])
    return tree / "linux"


def _compile_package(run: Run, make: list[str], tree: Path, version: str, digest: str) -> Path:
    """The package with image and modules; not the packages with headers, which nothing here uses.

    Its release ends with the digest's first digits: packages of two series can be installed side by side, and
    ``uname -r`` shows which runs.
    """
    run(["sed", "-i", f"s/date -R/date -R -u -d @{PACKAGE_EPOCH}/", "scripts/package/mkdebian"])
    # The needs of this build are checked before; the complete list also covers the packages of headers.
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
    [package] = tree.parent.glob("linux-image-*.deb")
    return package


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
