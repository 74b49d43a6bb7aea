# SPDX-License-Identifier: Apache-2.0
"""The whole testbed as a container image, built by buildah from ``images/Containerfile``.

Owns the build context ``userland``: this machine's part of the cache folder, the Python packages, the list of
components (SBOM), and the copyright notices.
"""

from __future__ import annotations

import email
import hashlib
import json
import os
import shutil
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from longfat.builds.image import RECIPE_FOLDER, ImageBuild, ImageRecipe, read_recipe, write_userland
from longfat.builds.kernel_targets import KIT
from longfat.builds.listing import listing_digest
from longfat.builds.programs import require_packages, run_program
from longfat.system.cache import cache_folder
from longfat.system.errors import RigError
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


DOCUMENTS = "usr/share/doc"


def add_copyright_files(userland: Path, recipe: ImageRecipe, packages: Iterable[str]) -> None:
    """Write ``usr/share/doc/PACKAGE/copyright`` of all packages into ``userland``, from a second, whole userland.

    Packages of one source may share a file by a link. Raises RigError with the packages that have none.
    """
    with tempfile.TemporaryDirectory(prefix="documents-", dir=userland.parent) as scratch:
        tar = Path(scratch) / "whole.tar"
        write_userland(replace(recipe, path_excludes=()), tar)
        names = Path(scratch) / "names"
        with tarfile.open(tar) as files:
            names.write_text("".join(f"{file.name}\n" for file in files if _wanted(file)))
        run_program("tar", "-x", f"-f{tar}", f"-C{userland}", "--no-same-owner", f"--files-from={names}")
    lacking = [name for name in packages if not (userland / DOCUMENTS / name / "copyright").is_file()]
    if lacking:
        raise RigError(f"no copyright file of {', '.join(lacking)}", hint="remove the cached image, and build it again")


def _wanted(file: tarfile.TarInfo) -> bool:
    folder, _, name = file.name.removeprefix("./").rpartition("/")
    return (name == "copyright" and folder.startswith(f"{DOCUMENTS}/")) or (file.issym() and folder == DOCUMENTS)


UNKNOWN = "NOASSERTION"
WHOLE = "SPDXRef-longfat"


def sbom(userland: Path, python: Path, version: str, epoch: int) -> str:
    """Return the text of an SPDX document, equal for equal inputs.

    ``userland`` has dpkg's status, ``python`` the folders ``*.dist-info``. The licences of Debian's packages are not
    stated, because dpkg does not know them.
    """
    found = sorted([*_debian(userland), *_python(python)], key=lambda one: str(one["SPDXID"]))
    own = _package("longfat", version, "Apache-2.0", f"pkg:generic/longfat@{version}") | {"SPDXID": WHOLE}
    content = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()
    contained = (
        {"spdxElementId": WHOLE, "relationshipType": "CONTAINS", "relatedSpdxElement": one["SPDXID"]} for one in found
    )
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"longfat-{version}",
        "documentNamespace": f"https://longfat.invalid/spdx/{version}/{content}",
        "creationInfo": {
            "created": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": [f"Tool: longfat-{version}"],
        },
        "packages": [own, *found],
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": WHOLE},
            *contained,
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def _package(name: str, version: str, licence: str, purl: str) -> dict[str, Any]:
    letters = "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in f"{purl[4:]}")
    return {
        "SPDXID": f"SPDXRef-{letters}",
        "name": name,
        "versionInfo": version,
        "downloadLocation": UNKNOWN,
        "filesAnalyzed": False,
        "licenseConcluded": UNKNOWN,
        "licenseDeclared": licence,
        "copyrightText": UNKNOWN,
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}],
    }


def _debian(userland: Path) -> Iterator[dict[str, Any]]:
    for entry in (userland / "var/lib/dpkg/status").read_text(encoding="utf-8").strip().split("\n\n"):
        about = email.message_from_string(entry)
        if about["Status"].endswith(" installed"):
            name, version = about["Package"], about["Version"]
            escaped = version.replace("+", "%2B").replace(":", "%3A")
            purl = f"pkg:deb/debian/{name.replace('+', '%2B')}@{escaped}?arch={about['Architecture']}"
            yield _package(name, version, UNKNOWN, purl)


def _python(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.glob("*.dist-info/METADATA")):
        about = email.message_from_string(file.read_text(encoding="utf-8"))
        name, version = about["Name"], about["Version"]
        licence = about["License-Expression"] or UNKNOWN
        yield _package(name, version, licence, f"pkg:pypi/{name.lower().replace('_', '-')}@{version}")
