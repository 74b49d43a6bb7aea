# SPDX-License-Identifier: Apache-2.0
"""Host profiles: differences between the TCP stack of an era and the stack of the project's kernel.

``stacks.toml`` has the settings with their reasons. A profile never chooses a congestion control, an MTU or a queue:
these belong to the study. Offloads are off under every profile unless the study asks for them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longfat.study.catalog.kernels import DEFAULT_KERNEL


@dataclass(frozen=True)
class Setting:
    """A sysctl, its value, and the reason for the value, with a source."""

    sysctl: str
    value: str
    reason: str


@dataclass(frozen=True)
class Stack:
    """A named set of settings for senders and receivers; None is the kernel's own initial window.

    ``kernel`` is the kernel of runs whose study names none.
    """

    name: str
    summary: str
    kernel: str = DEFAULT_KERNEL
    initial_cwnd_segments: int | None = None
    settings: tuple[Setting, ...] = ()

    @property
    def sysctls(self) -> dict[str, str]:
        """Values of the settings by sysctl name."""
        return {setting.sysctl: setting.value for setting in self.settings}


def _settings(entries: Mapping[str, Any]) -> tuple[Setting, ...]:
    return tuple(Setting(sysctl, entry["value"], entry["reason"]) for sysctl, entry in entries.items())


_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

RECEIVER_SETTINGS = _settings(_DATA["receiver"])
"""Settings of every receiver under the project's kernels."""

SENDER_SETTINGS = _settings(_DATA["sender"])
"""Settings of every sender under the project's kernels."""

STACKS: Mapping[str, Stack] = {
    name: Stack(name, **{**entry, "settings": _settings(entry.get("settings", {}))})
    for name, entry in _DATA["profiles"].items()
}


def kernel_of_stack(name: str) -> str:
    """Return the default kernel of a stack profile; for an unknown profile, the project's default kernel."""
    stack = STACKS.get(name)
    return stack.kernel if stack else DEFAULT_KERNEL
