# SPDX-License-Identifier: Apache-2.0
"""How the raw files of a run are written."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from longfat.runspec import Sent, SentOverTcp


def write_json(path: Path, data: object) -> None:
    """Write ``data`` as sorted, indented JSON."""
    path.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")


def report_of(kind: str, one: Sent) -> dict[str, Any]:
    """Return the members with which the report of each kind of traffic begins."""
    found: dict[str, Any] = {kind: one.name, "sender": one.sender, "receiver": one.receiver}
    found |= {"start_us": one.start_us, "end_us": one.start_us + one.duration_us}
    return found | ({"cca": one.cca} if isinstance(one, SentOverTcp) else {})


def write_points(path: Path, column: str, points: Iterable[tuple[int, int]]) -> None:
    """Write a table of ``t_us`` and one more column."""
    with path.open("w") as table:
        table.write(f"t_us,{column}\n")
        table.writelines(f"{t_us},{value}\n" for t_us, value in points)
