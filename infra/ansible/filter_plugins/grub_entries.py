# SPDX-License-Identifier: Apache-2.0
"""Filter that finds the boot entry of a kernel in GRUB's configuration as grub-mkconfig writes it.

Owns the reading of grub.cfg only; what is done with an entry stands in the role kernel_booted.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_OPENING = re.compile(r"^\s*(submenu|menuentry)\b.*\$menuentry_id_option '([^']+)'.*\{\s*$")
_KERNEL = re.compile(r"^\s*linux(?:16|efi)?\s+(\S+)")
_CLOSING = re.compile(r"^\s*\}\s*$")


def grub_entry(configuration: str, release: str) -> str:
    """The full id, SUBMENU>ENTRY, of the entry that boots the kernel ``release``; empty when there is none.

    An entry for recovery is never meant. Of two entries the one inside a submenu is: the first entry of the menu is
    whatever kernel is the newest, and boots another one after the next update.
    """
    path: list[str] = []
    found: list[str] = []
    for line in configuration.splitlines():
        if opening := _OPENING.match(line):
            path.append(opening[2])
        elif path and (kernel := _KERNEL.match(line)):
            file = kernel[1].rsplit("/", 1)[-1]
            if file == f"vmlinuz-{release}" and "-recovery-" not in path[-1]:
                found.append(">".join(path))
        elif path and _CLOSING.match(line):
            path.pop()
    return max(found, key=lambda entry: ("-advanced-" in entry, entry.count(">")), default="")


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, Callable[..., str]]:
        return {"grub_entry": grub_entry}
