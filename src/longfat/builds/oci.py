# SPDX-License-Identifier: Apache-2.0
"""The whole testbed as a container image, built by buildah from ``images/Containerfile``.

Owns the build context ``userland``: this machine's part of the cache folder, and the Python packages.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

from longfat.builds.copyright import add_copyright_files
from longfat.builds.image import RECIPE_FOLDER, ImageBuild, read_recipe
from longfat.builds.kernel_targets import KIT
from longfat.builds.listing import listing_digest
from longfat.builds.packages import require_packages
from longfat.builds.programs import run_program
from longfat.builds.sbom import sbom
from longfat.system.cache import cache_folder
from longfat.system.store import keep

CHECKOUT = RECIPE_FOLDER.parent
CACHE = "opt/longfat/system/cache"
SBOM = "opt/longfat/system/sbom.spdx.json"
PACKAGES = "usr/local/lib/python3.11/dist-packages"
WHEELS = ["--python-version=3.11", *(f"--platform=manylinux_2_{minor}_x86_64" for minor in range(17, 37))]


def build_oci(
    kernels: Sequence[Path], image: ImageBuild, root: Path, *, say: Callable[[str], None] = lambda line: None
) -> Path:
    """Build the container image; return its archive for Docker, Podman and Apptainer. Equal inputs give equal bytes.

    ``kernels``, ``image`` and ``root`` are in the cache folder. Raises RigError if a package or program is missing.
    """
    require_packages(RECIPE_FOLDER / "packages-oci.txt")
    version = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    tag = f"docker.io/library/longfat:{version}"  # for docker: longfat:VERSION
    recipe = read_recipe(RECIPE_FOLDER)
    epoch = recipe.source_date_epoch

    def make(new: Path) -> None:
        say("building the container image with buildah (about three minutes)")
        userland, storage = new.parent / "userland", new.parent / "storage"
        _stage(userland, image, root, epoch)
        for kernel in kernels:  # without a compiler in the container nothing can be linked with them
            target = userland / CACHE / "kernels" / kernel.parent.name
            shutil.copytree(kernel.parent, target, ignore=shutil.ignore_patterns(KIT))
        add_copyright_files(userland, recipe, json.loads((image.path.parent / "image.json").read_text())["packages"])
        _install(userland / PACKAGES)
        (userland / SBOM).write_text(sbom(userland, userland / PACKAGES, version, epoch), encoding="utf-8")
        buildah = ["buildah", f"--root={storage}", f"--runroot={storage}/run", "--storage-driver=vfs"]
        files = [f"--file={RECIPE_FOLDER}/Containerfile", f"--ignorefile={RECIPE_FOLDER}/Containerfile.ignore"]
        options = ["--isolation=chroot", "--no-hosts", f"--timestamp={epoch}", f"--tag={tag}"]
        options += [f"--label=org.opencontainers.image.{key}={value}" for key, value in _labels(version).items()]
        run_program(*buildah, "build", *files, *options, f"--build-context=userland={userland}", str(CHECKOUT))
        run_program(*buildah, "push", tag, f"docker-archive:{new}:{tag}")

    archive = cache_folder() / "oci" / f"longfat-{version}.tar"
    return keep(archive, make, "the container image", "3 GB", right=lambda path: False)


def sign_file(file: Path, key: Path) -> Path:
    """Sign ``file`` with an SSH key in the namespace "longfat"; return the new signature. Raises RigError."""
    signature = file.with_name(f"{file.name}.sig")
    signature.unlink(missing_ok=True)
    run_program("ssh-keygen", "-Y", "sign", "-n", "longfat", "-f", key, file, hint="needs openssh-client and a key")
    return signature


def _labels(version: str) -> dict[str, str]:
    """Return the labels by their names in the OCI's image specification. The kernels are under GPL-2.0-only."""
    return {
        "title": "longfat",
        "description": "Reproductions of TCP congestion-control studies with real Linux TCP in virtual time",
        "version": version,
        "licenses": "Apache-2.0 AND GPL-2.0-only",
        "documentation": f"/{SBOM}",
    }


def _stage(top: Path, image: ImageBuild, root: Path, epoch: int) -> None:
    """Fill ``top`` with the image and the cache folder of the container, which hard-links to the image's files."""
    base = top.parent / "image"
    shutil.copytree(image.path, base, symlinks=True)
    for path in base.rglob("*"):
        os.utime(path, (epoch, epoch), follow_symlinks=False)  # buildah gives all files this time
    images, roots = top / CACHE / "images" / image.path.parent.name, top / CACHE / "roots" / root.parent.name
    for folder in (top, images / "root", roots / "root"):
        shutil.copytree(base, folder, symlinks=True, copy_function=os.link, dirs_exist_ok=True)
    for path in (top / "etc/hosts", top / "etc/resolv.conf"):
        path.unlink(missing_ok=True)  # container tools write these files, and must not change the cached image
    facts = json.loads((image.path.parent / "image.json").read_text(encoding="utf-8"))
    (images / "image.json").write_text(json.dumps({**facts, "listing_sha256": listing_digest(base)}), encoding="utf-8")
    shutil.copytree(root / "code", roots / "root/code", symlinks=True, dirs_exist_ok=True)
    shutil.copy(root.parent / "root.json", roots)


def _install(target: Path) -> None:
    """Install the packages of ``requirements.lock`` for the image's Python."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    lock = f"--requirement={CHECKOUT / 'requirements.lock'}"
    run_program(*pip, "--require-hashes", "--only-binary=:all:", *WHEELS, lock, f"--target={target}")
    shutil.rmtree(target / "bin", ignore_errors=True)  # programs that name this machine's Python
    for record in target.glob("*.dist-info/RECORD"):
        record.unlink()
    for tests in (*target.glob("**/tests"), target / "pyarrow/include"):
        shutil.rmtree(tests, ignore_errors=True)
