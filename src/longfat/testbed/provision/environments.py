# SPDX-License-Identifier: Apache-2.0
"""The environments of infra/terraform: their names, the cost of each, the variables that it needs.

Owns the reading of variables.tf, which is in the form of ``terraform fmt``. Must not start Terraform.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from longfat.errors import RigError, StudyError

INFRA = Path(__file__).resolve().parents[4] / "infra"
ENVIRONMENTS = INFRA / "terraform/environments"


@dataclass(frozen=True)
class Environment:
    """A way to have machines. ``rented``: they cost money or an allocation; ``patience``: how long they take.

    ``met`` is the sentence on what the project has met of it, with which the environment's README begins too.
    """

    name: str
    rented: bool
    patience: str
    met: str

    @property
    def folder(self) -> Path:
        return ENVIRONMENTS / self.name


_LONG = "not known; bare metal takes many minutes"
_ALL = (
    Environment(
        "local",
        False,
        "half a minute to a few minutes, until emulated machines have booted",
        "Applied by the project with QEMU 7.2 without KVM, by Terraform 1.11.",
    ),
    Environment(
        "libvirt",
        False,
        "not known with KVM; without it, four minutes",
        "Applied by the project with libvirt 9.0, QEMU 7.2 without KVM and cloud-init, by Terraform 1.11.",
    ),
    Environment(
        "openstack",
        True,
        _LONG,
        "Applied by the project with OpenStack of Debian 12 (Nova 26, Neutron 21, Ironic 21), by Terraform 1.11; its "
        "hypervisor and bare metal were fakes, no system was booted.",
    ),
    Environment("latitude", True, _LONG, "Never applied by the project, only validated against its documented schema."),
    Environment(
        "existing",
        False,
        "seconds, as nothing is made",
        "Applied by the project by Terraform 1.11, without any machine behind its addresses.",
    ),
)
KNOWN = {environment.name: environment for environment in _ALL}


@dataclass(frozen=True)
class Variable:
    """One variable of an environment; it is ``required`` where it has no default."""

    name: str
    description: str
    required: bool


def find_environment(name: str) -> Environment:
    """The environment ``name``.

    Raises StudyError when there is none, RigError when this installation has no infra/.
    """
    if name not in KNOWN:
        near = difflib.get_close_matches(name, KNOWN, n=1)
        raise StudyError(
            f"unknown environment {name!r}; allowed: {', '.join(KNOWN)}",
            hint=f"did you mean {near[0]}?" if near else None,
        )
    if not KNOWN[name].folder.is_dir():
        raise RigError("the Terraform modules are not here", where=str(ENVIRONMENTS), hint="labs need a checkout")
    return KNOWN[name]


def variables_of(environment: Environment) -> tuple[Variable, ...]:
    """The variables that the environment's variables.tf declares, in its order."""
    text = (environment.folder / "variables.tf").read_text(encoding="utf-8")
    blocks = re.findall(r'^variable "(\w+)" {\n(.*?)^}', text, flags=re.MULTILINE | re.DOTALL)
    return tuple(_variable(name, body) for name, body in blocks)


def _variable(name: str, body: str) -> Variable:
    description = re.search(r'^  description = "(.*)"$', body, flags=re.MULTILINE)
    has_default = re.search(r"^  default\s*=", body, flags=re.MULTILINE)
    return Variable(name, description[1] if description else "", not has_default)
