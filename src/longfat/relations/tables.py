# SPDX-License-Identifier: Apache-2.0
"""CSV files of tables, such as tables of papers. A row with a number is a cell of the paper's table.

Owns the form of such a file: ``value`` is a number, and ``error`` a number or empty.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from longfat.system.files import read_plain

MAX_BYTES = 1_000_000
VALUE = "value"  # the column of a cell's number
ERROR = "error"  # the column of the paper's own error
RETEST = "retest"  # the column with yes, or the row's own deviation, where the paper measured twice
_REFERENCE = re.compile(r"\$\{([^{}]*)\}")


class TableError(Exception):
    """An error in a table; the text names file and line."""


@dataclass(frozen=True)
class Row:
    """One row of a table: its fields by column."""

    line: int
    columns: Mapping[str, str]

    @property
    def printed(self) -> str:
        """The row's number, with the paper's own error if it has one; "" without a number."""
        value, error = self.columns.get(VALUE, ""), self.columns.get(ERROR)
        return f"{value} ± {error}" if error else value

    @property
    def named(self) -> str:
        """The number, after its name in the column ``cell`` if the file has this column."""
        return f"{self.columns.get('cell', '')} {self.printed}".strip()

    def filled(self, template: str, **further: str) -> str:
        """Return the template with each ``${COLUMN}`` and each ``further`` name replaced; ``${value}`` is ``printed``.

        Raises TableError on an unknown column.
        """
        fields = {**self.columns, **further} | ({VALUE: self.printed} if VALUE in self.columns else {})

        def field(match: re.Match[str]) -> str:
            if match[1] not in fields:
                raise TableError(f"the table has no column {match[1]!r}; it has {', '.join(self.columns)}")
            return fields[match[1]]

        return _REFERENCE.sub(field, template)

    def lacks(self, template: str) -> bool:
        """Return whether a column that the template names is empty."""
        return any(self.columns.get(name) == "" for name in _REFERENCE.findall(template))


def read_rows(path: Path, *required: str) -> tuple[Row, ...]:
    """Read the rows of a table with the ``required`` columns. Raises TableError if it has none or cannot be read."""
    try:
        text = read_plain(path, path.parent, MAX_BYTES).decode("utf-8-sig")  # a pipe or a device would not end
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        names = list(reader.fieldnames or ())
        rows = tuple(Row(reader.line_num, row) for row in reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{path.name} cannot be read: {error}") from error
    for name in names:
        if names.count(name) > 1:
            raise TableError(f"{path.name} has two columns {name!r}; names are unique")
    uneven = [str(row.line) for row in rows if None in row.columns or None in row.columns.values()]
    if uneven:
        lines = f"line{'s' if len(uneven) > 1 else ''} {', '.join(uneven)}"
        raise TableError(f"{path.name}, {lines}: {len(names)} columns are named, the row has others")
    if not rows:
        raise TableError(f"{path.name} has no row below its headings")
    if missing := [name for name in required if name not in names]:
        raise TableError(f"{path.name} has no column {' and no column '.join(missing)}; it has {', '.join(names)}")
    return rows


def read_cells(path: Path) -> tuple[Row, ...]:
    """Read the cells of a table of claims: rows with a number. Raises TableError like ``read_rows``."""
    return _numbered(path, read_rows(path, "claim", VALUE))


def read_claimed(path: Path) -> dict[str, list[Row]]:
    """Read the rows of a table by claim, in the file's order, except rows without a claim. Raises TableError."""
    found: dict[str, list[Row]] = {}
    for row in _numbered(path, read_rows(path, "claim")):
        if row.columns["claim"]:
            found.setdefault(row.columns["claim"], []).append(row)
    return found


def _numbered(path: Path, rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """Return the rows. Raises TableError with all values and errors that are not numbers."""
    faults = []
    for row in rows:
        for name, text in row.columns.items():
            if name == VALUE or (name == ERROR and text):
                try:
                    number = float(text)
                except ValueError:
                    number = math.nan
                if not math.isfinite(number) or (name == ERROR and number <= 0):
                    kind = "a number above 0" if name == ERROR else "a number"
                    faults.append(f"line {row.line}: {name} is {text!r}, not {kind}")
    if faults:
        raise TableError(f"{path.name}, {'; '.join(faults)}")
    return rows
