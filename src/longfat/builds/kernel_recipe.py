# SPDX-License-Identifier: Apache-2.0
"""The inputs of a named kernel from the folder ``kernels/``: source, patches and configuration.

Owns the layout of that folder and the identity of a kernel. Must not build anything.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from longfat.builds.kernel_source import Source
from longfat.builds.kernel_targets import GUEST, Target
from longfat.system.cache import HOME
from longfat.system.errors import RigError

KERNELS_FOLDER = HOME / "kernels"
_NUMBER = 4
"""Digits of the number at the start of a patch's file name."""
_DIFF = re.compile(r"^(?:diff --git |--- \S)", re.MULTILINE)
_BLOB_IDS = re.compile(r"^index [0-9a-f].*\n", re.MULTILINE)
_FUNCTION = re.compile(r"^(@@ [^@]* @@).*", re.MULTILINE)
_OPTION = re.compile(r"^(?:CONFIG_\w+=.*|# CONFIG_\w+ is not set)$", re.MULTILINE)


@dataclass(frozen=True)
class Recipe:
    """Inputs of the kernel ``name`` below ``kernels_folder``; ``further`` patches follow the series.

    All kernels share the series and the fragments next to it. ``source.toml`` in the kernel's folder may name a
    ``base``, whose settings, patches and fragments apply unless the kernel replaces them.
    """

    name: str
    kernels_folder: Path = KERNELS_FOLDER
    further: tuple[Path, ...] = ()

    def _folders(self) -> list[Path]:
        """Return the folders of the kernel: its base if it has one, then its own."""
        own = self.kernels_folder / self.name
        base = _settings(own).get("base")
        return [self.kernels_folder / base, own] if base else [own]

    def settings(self) -> dict[str, str]:
        """Return the settings of ``source.toml``: source and the guest's command line."""
        return {key: value for folder in self._folders() for key, value in _settings(folder).items()}

    def is_pinned(self, source: Source) -> bool:
        """Return whether the source is the tarball behind the evidence, by its SHA-256."""
        settings = self.settings()
        return source.version == settings["pinned"] and source.sha256 in settings["sha256"].split()

    def command_line(self) -> tuple[str, ...]:
        """Return the kernel's own words on the guest's command line."""
        return tuple(self.settings().get("command_line", "").split())

    def patches(self) -> list[Path]:
        """Return the patches in the order of their numbers, then the further ones. Raises RigError if one is missing.

        A patch in a kernel's folder replaces the patch of the series with the same number.
        """
        names = (self.kernels_folder / "series").read_text(encoding="utf-8").split()
        numbered = {name[:_NUMBER]: self.kernels_folder / "patches" / name for name in names}
        for folder in self._folders():
            numbered |= {path.name[:_NUMBER]: path for path in (folder / "patches").glob("*.patch")}
        missing = [path.name for path in numbered.values() if not path.is_file()]
        if missing:
            where = str(self.kernels_folder / "series")
            raise RigError(f"patches named in the series are missing: {', '.join(missing)}", where=where)
        return [*(path for _, path in sorted(numbered.items())), *self.further]

    def fragments(self, target: Target = GUEST) -> list[Path]:
        """Return the configuration fragments by name. A kernel's fragment replaces a shared one of the same name.

        Raises RigError if the kernel has none for the target.
        """
        own = self.kernels_folder / self.name / "config" / target.name
        if not any(own.glob("*.config")):
            where = str(self.kernels_folder / self.name)
            raise RigError(f"the kernel {self.name} has no configuration for {target.name}", where=where)
        shared = self.kernels_folder / "config"
        folders = [shared, shared / target.name, *(folder / "config" / target.name for folder in self._folders())]
        named = {path.name: path for folder in folders for path in folder.glob("*.config")}
        return [named[name] for name in sorted(named)]

    def digest(self, source: Source, target: Target = GUEST) -> str:
        """Return the kernel's identity: SHA-256 of source, changes by patches, options and the guest's command line.

        Messages of patches and comments of fragments do not count.
        """
        digest = hashlib.sha256(source.sha256.encode())
        for path in self.patches():
            digest.update(_changes(path.read_bytes()))
        for path in self.fragments(target):
            digest.update("\n".join(_OPTION.findall(path.read_text(encoding="utf-8"))).encode() + b"\0")
        if target is GUEST:
            digest.update(" ".join(self.command_line()).encode())
        return digest.hexdigest()

    def ccas(self) -> frozenset[str]:
        """Return the names of the congestion controls in the guest's configuration; reno is always included."""
        options = self._options("TCP_CONG")
        names = {"HSTCP": "highspeed"}
        return frozenset({"reno"} | {names.get(option, option.lower()) for option in options if option != "ADVANCED"})

    def queues(self) -> frozenset[str]:
        """Return the names of the qdiscs in the guest's configuration; the plain ones are always included."""
        return frozenset({"pfifo", "bfifo", *(option.lower() for option in self._options("NET_SCH"))})

    def _options(self, family: str) -> list[str]:
        """Return the suffix of each built-in option of a family."""
        text = "".join(path.read_text(encoding="utf-8") for path in self.fragments())
        return re.findall(rf"^CONFIG_{family}_(\w+)=y", text, re.MULTILINE)


def _settings(folder: Path) -> dict[str, str]:
    return tomllib.loads((folder / "source.toml").read_text(encoding="utf-8"))


def _changes(patch: bytes) -> bytes:
    """Return the diff of a patch without message, blob ids and function names after ``@@``."""
    text = patch.decode(errors="surrogateescape")
    start = _DIFF.search(text)
    diff = _BLOB_IDS.sub("", text[start.start() :]) if start else text
    return _FUNCTION.sub(r"\1", diff).encode(errors="surrogateescape")
