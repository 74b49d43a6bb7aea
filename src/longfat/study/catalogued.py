# SPDX-License-Identifier: Apache-2.0
"""Types of keys whose values are names of the catalogue: kernels, stacks, offloads, sysctls."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from longfat.study.catalog.ccas import PARAMETER_SYSCTLS
from longfat.study.catalog.kernels import KERNELS
from longfat.study.catalog.offloads import OFFLOADS
from longfat.study.catalog.stacks import RECEIVER_SETTINGS, SENDER_SETTINGS, STACKS
from longfat.study.catalog.sysctls import MACHINE_SYSCTLS
from longfat.study.schema.fields import Check, among, fault, surrounding
from longfat.study.schema.names import shown

_SYSCTL = re.compile(r"net(\.[A-Za-z0-9_-]+)+")


def _sysctl_value(given: object) -> str:
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise fault(f"{shown(given)} is not a sysctl value; write a whole number or a text")
    return str(given)


def _sysctl_name(given: str) -> str:
    if not _SYSCTL.fullmatch(given):
        raise fault(f"{shown(given)} is not a network sysctl; allowed: names of the form net.*")
    if given in PARAMETER_SYSCTLS or given == "net.ipv4.tcp_congestion_control":
        raise fault(f"{shown(given)} is set by the algorithm of a flow", "give it under algorithms")
    for role, settings in (("sender", SENDER_SETTINGS), ("receiver", RECEIVER_SETTINGS)):
        if given in {setting.sysctl for setting in settings}:
            raise fault(f"{shown(given)} is set by the testbed on every {role} and cannot be changed")
    return given


def _host_sysctl_name(given: str) -> str:
    if given in MACHINE_SYSCTLS:
        raise fault(f"{shown(given)} is one value for all hosts of a run", "give it under `sysctls` of all hosts")
    return given


BaseKernelName = Annotated[str, among("kernel", KERNELS)]
KernelName = Annotated[str, surrounding("kernel", KERNELS)]
StackName = Annotated[str, among("stack", STACKS)]
OffloadName = Annotated[str, among("offload", OFFLOADS)]
SysctlName = Annotated[str, Check(_sysctl_name, {"pattern": f"^{_SYSCTL.pattern}$"})]
HostSysctlName = Annotated[SysctlName, AfterValidator(_host_sysctl_name)]
SysctlValue = Annotated[str, BeforeValidator(_sysctl_value), WithJsonSchema({"type": ["integer", "string"]})]
