# SPDX-License-Identifier: Apache-2.0
"""Names of the catalogue as types of keys, and a kernel with a study's patches or the source of a git repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from longfat.study.catalog.ccas import PARAMETER_SYSCTLS
from longfat.study.catalog.kernels import DEFAULT_KERNEL, KERNELS, OwnKernel, Piece, Tree
from longfat.study.catalog.offloads import OFFLOADS
from longfat.study.catalog.stacks import RECEIVER_SETTINGS, SENDER_SETTINGS, STACKS
from longfat.study.catalog.sysctls import MACHINE_SYSCTLS
from longfat.study.schema import fields as f
from longfat.study.schema.names import shown
from longfat.study.traffic.own import own_file

_SYSCTL = re.compile(r"net(\.[A-Za-z0-9_-]+)+")


def _sysctl_value(given: object) -> str:
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise f.fault(f"{shown(given)} is not a sysctl value; write a whole number or a text")
    if str(given).lower() in ("on", "off", "yes", "no", "true", "false"):
        raise f.fault(f"{shown(given)} is not a sysctl value; the kernel takes numbers, such as 1 or 0")
    return str(given)


def _sysctl_name(given: str) -> str:
    if not _SYSCTL.fullmatch(given):
        raise f.fault(f"{shown(given)} is not a network sysctl; allowed: names of the form net.*")
    if given in PARAMETER_SYSCTLS or given == "net.ipv4.tcp_congestion_control":
        raise f.fault(f"{shown(given)} is set by the algorithm of a flow", "give it under algorithms")
    for role, settings in (("sender", SENDER_SETTINGS), ("receiver", RECEIVER_SETTINGS)):
        if given in {setting.sysctl for setting in settings}:
            raise f.fault(f"{shown(given)} is set by the testbed on every {role} and cannot be changed")
    return given


def _host_sysctl_name(given: str) -> str:
    if given in MACHINE_SYSCTLS:
        raise f.fault(f"{shown(given)} is one value for all hosts of a run", "give it under `sysctls` of all hosts")
    return given


BaseKernelName = Annotated[str, f.among("kernel", KERNELS)]
KernelName = Annotated[str, f.surrounding("kernel", KERNELS)]
StackName = Annotated[str, f.among("stack", STACKS)]
OffloadName = Annotated[str, f.among("offload", OFFLOADS)]
SysctlName = Annotated[str, f.Check(_sysctl_name, {"pattern": f"^{_SYSCTL.pattern}$"})]
HostSysctlName = Annotated[SysctlName, AfterValidator(_host_sysctl_name)]
SysctlValue = Annotated[str, BeforeValidator(_sysctl_value), WithJsonSchema({"type": ["integer", "string"]})]


def _read(given: object, info: ValidationInfo) -> Piece:
    if not isinstance(given, str) or not given.strip():
        raise f.fault(f"{shown(given)} is not the name of a file")
    return own_file((info.context or {})["folder"], given)


Patch = Annotated[Piece, PlainValidator(_read), WithJsonSchema({"type": "string", "pattern": r"\S"})]


def _folder(given: object, info: ValidationInfo) -> Path:
    if not isinstance(given, str) or not given.strip():
        raise f.fault(f"{shown(given)} is not the path of a folder")
    folder: Path = (info.context or {})["folder"]
    return folder / Path(given).expanduser()


Folder = Annotated[Path, PlainValidator(_folder), WithJsonSchema({"type": "string", "pattern": r"\S"})]
COMMIT = re.compile(r"[0-9a-f]{40}")


class Kernel(f.Closed):
    """A kernel with patches of the study, or with the source of a git repository on this machine."""

    base: BaseKernelName = Field(
        default=DEFAULT_KERNEL, description=f"kernel that is patched, a name of `kernels/` (default {DEFAULT_KERNEL})"
    )
    patches: tuple[Patch, ...] = Field(
        default=(),
        description="files of the study's folder, as `git format-patch` makes them; they are applied in this order, "
        "after the patches of `base`",
    )
    tree: Folder | None = Field(
        default=None,
        description="git repository of kernel source, absolute or relative to the study's folder; replaces the source "
        "of `base`, whose patches and configuration remain",
    )
    commit: Annotated[str, f.matching(COMMIT, "a commit; allowed: its 40 hex digits")] | None = Field(
        default=None, description="commit of `tree` that is built, by its 40 hex digits"
    )

    @model_validator(mode="after")
    def _changed(self) -> Self:
        if (self.tree is None) != (self.commit is None):
            raise f.fault("tree and commit belong together", "`git -C TREE rev-parse HEAD` prints a commit")
        if not self.patches and self.tree is None:
            raise f.fault("nothing changes the base; needed: patches, or tree and commit")
        return self

    @property
    def own(self) -> OwnKernel:
        """The kernel to build."""
        tree = Tree(self.tree, self.commit) if self.tree and self.commit else None
        return OwnKernel(self.base, self.patches, tree=tree)
