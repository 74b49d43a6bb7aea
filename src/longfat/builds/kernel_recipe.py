# SPDX-License-Identifier: Apache-2.0
"""The inputs of a named kernel: its folder ``kernels/NAME``, and the fragments that all kernels share.

Owns the layout of ``kernels/`` and a kernel's identity. Must not build anything.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from longfat.builds.kernel_source import Source
from longfat.builds.kernel_targets import GUEST, Target
from longfat.errors import RigError

KERNELS_FOLDER = Path(__file__).resolve().parents[3] / "kernels"


@dataclass(frozen=True)
class Recipe:
    """A kernel by its name, below ``kernels_folder``, and the patches of a study that follow those of its series.

    A kernel whose ``source.toml`` names a ``base`` has the base's source, series, command line and fragments. A
    fragment of its own replaces the base's fragment of the same name.
    """

    name: str
    kernels_folder: Path = KERNELS_FOLDER
    further: tuple[Path, ...] = ()

    @property
    def folder(self) -> Path:
        """Folder of the kernel's own fragments."""
        return self.kernels_folder / self.name

    @property
    def base_folder(self) -> Path:
        """Folder of source, series and patches."""
        return self.kernels_folder / self._own_settings().get("base", self.name)

    def _own_settings(self) -> dict[str, str]:
        return tomllib.loads((self.folder / "source.toml").read_text(encoding="utf-8"))

    def settings(self) -> dict[str, str]:
        """Settings of the source and of the guest's command line: ``source.toml`` of the base."""
        return tomllib.loads((self.base_folder / "source.toml").read_text(encoding="utf-8"))

    def command_line(self) -> tuple[str, ...]:
        """The words that this kernel needs on a guest's command line, in addition to those of every kernel."""
        return tuple(self.settings().get("command_line", "").split())

    def patches(self) -> list[Path]:
        """The patches in the order of the series file, then the further ones. Raises RigError when one is missing."""
        folder = self.base_folder
        names = (folder / "series").read_text(encoding="utf-8").split()
        paths = [folder / "patches" / name for name in names]
        missing = [path.name for path in paths if not path.is_file()]
        if missing:
            raise RigError(f"patches named in the series are missing: {', '.join(missing)}", where=str(folder))
        return [*paths, *self.further]

    def fragments(self, target: Target = GUEST) -> list[Path]:
        """List the configuration fragments by name: those of all kernels, and the kernel's own for the target.

        Raises RigError when it has none for the target.
        """
        own = [*(self.folder / "config" / target.name).glob("*.config")]
        if not own:
            raise RigError(f"the kernel {self.name} has no configuration for {target.name}", where=str(self.folder))
        base = (self.base_folder / "config" / target.name).glob("*.config")
        files = [*(self.kernels_folder / "config").glob("*.config"), *base, *own]
        named = {path.name: path for path in files}
        return [named[name] for name in sorted(named)]

    def digest(self, source: Source, target: Target = GUEST) -> str:
        """SHA-256 over source, patches, the target's configuration and command line: the kernel's identity."""
        digest = hashlib.sha256(source.sha256.encode())
        for path in [*self.patches(), *self.fragments(target)]:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        if target is GUEST:
            digest.update(" ".join(self.command_line()).encode())
        return digest.hexdigest()

    def ccas(self) -> frozenset[str]:
        """Kernel names of the congestion controls that the guest's configuration has; reno is always there."""
        options = self._options("TCP_CONG")
        names = {"HSTCP": "highspeed"}
        return frozenset({"reno"} | {names.get(option, option.lower()) for option in options if option != "ADVANCED"})

    def queues(self) -> frozenset[str]:
        """Names of the kinds of queue that the guest's configuration has; the plain ones are always there."""
        return frozenset({"pfifo", "bfifo", *(option.lower() for option in self._options("NET_SCH"))})

    def _options(self, family: str) -> list[str]:
        """What follows the name of a family of options in each that is built in."""
        text = "".join(path.read_text(encoding="utf-8") for path in self.fragments())
        return re.findall(rf"^CONFIG_{family}_(\w+)=y", text, re.M)
