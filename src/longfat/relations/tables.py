# SPDX-License-Identifier: Apache-2.0
"""Tables of papers as CSV files: one row for each cell, with its number and, where the paper prints them, its error and
sample size.

Owns the form of such a file. Must not know what the columns are about.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REQUIRED = ("claim", "value")
ERROR = "error"  # the column of the paper's own error
RETEST = "retest"  # the column that says yes where the paper measured again
_REFERENCE = re.compile(r"\$\{([^{}]*)\}")


class TableError(Exception):
    """What is wrong with a table; the text names file and line."""


@dataclass(frozen=True)
class Cell:
    """One number of the paper: its row in the file, by column."""

    line: int
    columns: Mapping[str, str]

    @property
    def printed(self) -> str:
        """The number, with the paper's own error if it has one."""
        error = self.columns.get(ERROR)
        return f"{self.columns['value']} ± {error}" if error else self.columns["value"]

    @property
    def named(self) -> str:
        """The number after what the paper calls it, if the file says so in a column ``cell``."""
        return f"{self.columns.get('cell', '')} {self.printed}".strip()

    def filled(self, template: str, **further: str) -> str:
        """The template with each ``${COLUMN}`` replaced, and each name that is given besides.

        Raises TableError on a column that there is not.
        """

        def column(match: re.Match[str]) -> str:
            name = match[1]
            if name == "value":
                return self.printed
            if name in further:
                return further[name]
            if name not in self.columns:
                raise TableError(f"the table has no column {name!r}; it has {', '.join(self.columns)}")
            return self.columns[name]

        return _REFERENCE.sub(column, template)


Cells = Sequence[Cell]


def read_cells(path: Path) -> dict[str, Cells]:
    """The cells of a table by claim, both in the file's order. Raises TableError when it cannot be read."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            names = list(reader.fieldnames or ())
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{path.name} cannot be read: {error}") from error
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise TableError(f"{path.name} has no column {' and no column '.join(missing)}; it has {', '.join(names)}")
    found: dict[str, list[Cell]] = {}
    for line, row in rows:
        if None in row or None in row.values():
            raise TableError(f"{path.name}, line {line}: {len(names)} columns are named, the row has others")
        for name in ("value", ERROR):
            _require_number(path, line, name, row.get(name, ""))
        found.setdefault(row["claim"], []).append(Cell(line, row))
    return {claim: tuple(cells) for claim, cells in found.items()}


def _require_number(path: Path, line: int, name: str, text: str) -> None:
    if name == ERROR and not text:
        return
    try:
        float(text)
    except ValueError:
        raise TableError(f"{path.name}, line {line}: {name} is {text!r}, not a number") from None
