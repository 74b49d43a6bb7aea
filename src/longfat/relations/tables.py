# SPDX-License-Identifier: Apache-2.0
"""Tables as CSV files, such as tables of papers: one row for each cell, with its number, and its error and sample
size if the paper prints them.

Owns the form of such a file. Must not know the meaning of the columns.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

VALUE = "value"  # the column of a cell's number
ERROR = "error"  # the column of the paper's own error
RETEST = "retest"  # the column with yes where the paper measured again
_REFERENCE = re.compile(r"\$\{([^{}]*)\}")


class TableError(Exception):
    """The fault of a table; the text names file and line."""


@dataclass(frozen=True)
class Row:
    """One row of a table: its fields by column."""

    line: int
    columns: Mapping[str, str]

    def filled(self, template: str, **further: str) -> str:
        """Return the template with each ``${COLUMN}`` and each ``further`` name replaced.

        Raises TableError on an unknown column.
        """
        fields = {**self.columns, **further}

        def field(match: re.Match[str]) -> str:
            if match[1] not in fields:
                raise TableError(f"the table has no column {match[1]!r}; it has {', '.join(self.columns)}")
            return fields[match[1]]

        return _REFERENCE.sub(field, template)

    def lacks(self, template: str) -> bool:
        """Return whether the row has an empty column that the template names."""
        return any(self.columns.get(name) == "" for name in _REFERENCE.findall(template))


@dataclass(frozen=True)
class Cell(Row):
    """One number of the paper: its row in the file, by column."""

    @property
    def printed(self) -> str:
        """The number, with the paper's own error if it has one."""
        error = self.columns.get(ERROR)
        return f"{self.columns['value']} ± {error}" if error else self.columns[VALUE]

    @property
    def named(self) -> str:
        """The number after the paper's name for it, if the file has that name in a column ``cell``."""
        return f"{self.columns.get('cell', '')} {self.printed}".strip()

    def filled(self, template: str, **further: str) -> str:
        """Fill the template as for any row; ``${value}`` includes the paper's own error."""
        return super().filled(template, **{**further, VALUE: self.printed})


Cells = Sequence[Cell]


def read_rows(path: Path) -> tuple[Row, ...]:
    """Read the rows of a table. Raises TableError if it cannot be read or has no row."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            names = list(reader.fieldnames or ())
            rows = [Row(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{path.name} cannot be read: {error}") from error
    for name in names:
        if names.count(name) > 1:
            raise TableError(f"{path.name} has two columns {name!r}; names are unique")
    for row in rows:
        if None in row.columns or None in row.columns.values():
            raise TableError(f"{path.name}, line {row.line}: {len(names)} columns are named, the row has others")
    if not rows:
        raise TableError(f"{path.name} has no row below its headings")
    return tuple(rows)


def read_cells(path: Path) -> Cells:
    """Read the cells of a table. Raises TableError if it cannot be read."""
    return tuple(_cell(path, row) for row in _rows_with(path, ("claim", VALUE)))


def read_claimed(path: Path) -> dict[str, Sequence[Row]]:
    """Read the rows of a table by claim, in the file's order, without rows of no claim.

    If the table has a column ``value``, the rows are cells. Raises TableError if it cannot be read.
    """
    found: dict[str, list[Row]] = {}
    for row in _rows_with(path, ("claim",)):
        found.setdefault(row.columns["claim"], []).append(_cell(path, row) if VALUE in row.columns else row)
    return {claim: tuple(rows) for claim, rows in found.items() if claim}


def _rows_with(path: Path, required: Sequence[str]) -> tuple[Row, ...]:
    rows = read_rows(path)
    names = rows[0].columns
    missing = [name for name in required if name not in names]
    if missing:
        raise TableError(f"{path.name} has no column {' and no column '.join(missing)}; it has {', '.join(names)}")
    return rows


def _cell(path: Path, row: Row) -> Cell:
    for name in (VALUE, ERROR):
        _require_number(path, row.line, name, row.columns.get(name, ""))
    return Cell(row.line, row.columns)


def _require_number(path: Path, line: int, name: str, text: str) -> None:
    if name == ERROR and not text:
        return
    try:
        float(text)
    except ValueError:
        raise TableError(f"{path.name}, line {line}: {name} is {text!r}, not a number") from None
