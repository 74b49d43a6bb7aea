# SPDX-License-Identifier: Apache-2.0
"""Tables of texts, numbers and computed or measured cells, and tables of the paper next to measured values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path as FilePath
from typing import Annotated, Any

from pydantic import AfterValidator, Discriminator, Field, Tag, ValidationInfo

from longfat.figures.base import Figure, Sources
from longfat.figures.parts import FigureData
from longfat.metrics.data import NoValue
from longfat.metrics.orders import Median
from longfat.relations.bind import RelationError, Scope
from longfat.relations.claims import placed
from longfat.relations.evaluate import evaluated
from longfat.relations.nodes import Expression as Node
from longfat.relations.nodes import Formula
from longfat.relations.syntax import parse_expression
from longfat.relations.tables import Row, TableError, read_cells, read_rows
from longfat.relations.tree import check as check_expression
from longfat.relations.tree import selections
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding
from longfat.study.study import Study

NO_VALUE = "-"
SMALL = 1e-4  # smaller numbers are printed as powers of ten


class Expression(f.Closed):
    """A cell that is measured or computed by a formula."""

    of: f.Text = Field(description="an expression of the language of relations")
    digits: Annotated[int, Field(strict=True, ge=0, le=9)] | None = Field(
        None, description="digits behind the point (default: 1, of a formula 2)"
    )


Cell = Annotated[
    Annotated[Expression, Tag("<expression>")] | Annotated[f.FactorValue, Tag("<value>")],
    Discriminator(lambda given: "<expression>" if isinstance(given, dict | Expression) else "<value>"),
]


def _next_to_document(given: str, info: ValidationInfo) -> str:
    """Return the path of a file next to the document, whose folder is in the context."""
    folder = (info.context or {}).get("folder")
    return str(FilePath(folder) / given) if folder else given


FileText = Annotated[f.Text, AfterValidator(_next_to_document)]
Headings = Annotated[
    Annotated[tuple[f.Text, ...], Field(min_length=1), Tag("<headings>")]
    | Annotated[dict[f.Text, Cell], Field(min_length=1), Tag("<columns>")],
    Discriminator(lambda given: "<columns>" if isinstance(given, dict) else "<headings>"),
]


class Table(Figure):
    """A table of given, computed or measured cells. A CSV file may have the rows."""

    is_table = True
    artifact: f.Name = Field(alias="table")
    file: FileText | None = Field(None, description="CSV file next to figures.yaml with the rows")
    columns: Headings | None = Field(
        None,
        description="headings; with `file` each with the template of its cells, where `${COLUMN}` is the text of a row "
        "(default: the file as it is)",
    )
    rows: tuple[tuple[Cell, ...], ...] = Field((), description="the cells; with `file` the cells of further rows")

    def faults(self) -> Iterator[Finding]:
        """Yield faults of the headings, whose form depends on whether a file has the rows."""
        if self.file is None and not isinstance(self.columns, tuple):
            yield Finding(("columns",), "must be a list of headings without `file`")
        elif self.file is None and not self.rows:
            yield Finding((self.kind,), "needs `rows` or `file`")
        elif self.file is not None and isinstance(self.columns, tuple):
            yield Finding(("columns",), "must be a mapping HEADING: TEXT with `file`")

    def findings(self, study: Study) -> Iterator[Finding]:
        """Yield the faults of its file, and unknown names in its expressions."""
        for i, row in enumerate(self.rows):
            for j, cell in enumerate(row):
                if isinstance(cell, Expression):
                    yield from _findings(cell.of, ("rows", i, j, "of"), study)
        try:
            rows = self._file_rows
        except TableError as error:
            yield Finding(("file",), str(error))
            return
        for heading, below in self._below.items():
            yield from self._column_findings(heading, below, rows, study)
        for number, row in enumerate(self.rows if self.file or self.columns else ()):
            if len(row) != len(self.headings):
                message = f"has {len(row)} cells, the table has {len(self.headings)} columns"
                yield Finding(("rows", number), message)

    def _column_findings(self, heading: str, below: Cell, rows: Iterable[Row], study: Study) -> Iterator[Finding]:
        """Yield the faults of the template of a heading, with the row of the file."""
        place = ("columns", heading)
        for row in rows:
            try:
                cell = _filled(below, row)
            except TableError as error:
                yield Finding(place, str(error))
                return  # no row has the column
            if isinstance(cell, Expression):
                at = f"{FilePath(str(self.file)).name}, line {row.line}: "
                yield from _findings(cell.of, (*place, "of"), study, at)

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings. Raises TableError if the file cannot be read."""
        return tuple(self.columns or self._file_rows[0].columns)

    @property
    def cells(self) -> tuple[tuple[Cell, ...], ...]:
        """The cells by row, expressions not yet evaluated. Raises TableError if the file cannot be read."""
        if self.columns is None:
            return (*(tuple(row.columns.values()) for row in self._file_rows), *self.rows)
        return (*(tuple(_filled(below, row) for below in self._below.values()) for row in self._file_rows), *self.rows)

    @cached_property
    def _file_rows(self) -> tuple[Row, ...]:
        return read_rows(FilePath(self.file)) if self.file is not None else ()

    @property
    def _below(self) -> Mapping[str, Cell]:
        """The template of each heading, if a file has the rows."""
        return self.columns if isinstance(self.columns, dict) else {}

    def expressions(self) -> Iterator[Node]:
        """Yield the expressions of its cells."""
        yield from (parse_expression(cell.of) for row in self.cells for cell in row if isinstance(cell, Expression))

    def data(self, sources: Sources) -> FigureData:
        """Evaluate the expressions of the table."""
        rows = tuple(tuple(_cell_text(cell, sources) for cell in row) for row in self.cells)
        behind = tuple(
            _runs_behind((cell.of for cell in row if isinstance(cell, Expression)), sources) for row in self.cells
        )
        return FigureData(self.headings, rows, behind if any(self.selections(sources.study)) else None)


def _filled(below: Cell, row: Row) -> Cell:
    """Return the cell of a row from the template of its heading; a dash if the row lacks a field."""
    if not isinstance(below, Expression):
        return row.filled(str(below))
    if row.lacks(below.of):
        return NO_VALUE
    return below.model_copy(update={"of": row.filled(below.of)})


class PaperTable(Figure):
    """A table of the paper from its CSV file, with the measured value next to each cell.

    By default it has a row for each ``setting`` of the file and two columns for each ``cell``: measured and stated.
    """

    is_table = True
    artifact: f.Name = Field(alias="cells")
    file: FileText = Field(description="CSV file next to figures.yaml")
    of: f.Text = Field(description="the expression of a cell; `${COLUMN}` stands for the text of its row")
    rows: f.Text = Field("${setting}", description="the name of a row; `${COLUMN}` as in `of`")
    heading: f.Text | None = Field(None, description="heading of these names")
    columns: f.Text = Field("${cell}", description="the name of a column; `${COLUMN}` as in `of`")

    @cached_property
    def cells(self) -> tuple[Row, ...]:
        """The cells of the file. Raises TableError."""
        return read_cells(FilePath(self.file))

    def findings(self, study: Study) -> Iterator[Finding]:
        """Yield the faults of its file, and unknown names in its expressions."""
        try:
            for cell in self.cells:
                yield from _findings(cell.filled(self.of), ("of",), study)
                cell.filled(self.rows)
                self._column(cell)
        except TableError as error:
            yield Finding(("file",), str(error))

    def expressions(self) -> Iterator[Node]:
        """Yield the expressions of its cells."""
        yield from (parse_expression(cell.filled(self.of)) for cell in self.cells)

    def data(self, sources: Sources) -> FigureData:
        """Compute a measured value next to each value of the paper."""
        names = list(dict.fromkeys(self._column(cell) for cell in self.cells))
        rows: dict[str, dict[str, Row]] = {}
        for cell in self.cells:
            rows.setdefault(cell.filled(self.rows), {})[self._column(cell)] = cell
        rows_found, runs = [], []
        for title, cells in rows.items():
            rows_found.append((title, *(text for name in names for text in self._pair(cells.get(name), sources))))
            runs.append(_runs_behind((cell.filled(self.of) for cell in cells.values()), sources))
        stated = "paper" if self.paper else "stated"
        headings = [text for number, name in enumerate(names) for text in (name, stated + " " * number)]
        return FigureData((self.heading or "", *headings), tuple(rows_found), tuple(runs))

    def _column(self, cell: Row) -> str:
        """Return the heading of a cell's column."""
        return cell.filled(self.columns, **({} if "cell" in cell.columns else {"cell": "here"}))

    def _pair(self, cell: Row | None, sources: Sources) -> tuple[str, str]:
        if cell is None:
            return "", ""
        digits = len(cell.columns["value"].partition(".")[2])
        ours = _cell_text(Expression(of=cell.filled(self.of), digits=digits), sources)
        return str(ours), cell.printed


def _findings(text: str, place: tuple[str | int, ...], study: Study, before: str = "") -> Iterator[Finding]:
    """Yield unknown names in an expression; ``before`` names its row of the file."""
    try:
        check_expression(parse_expression(text), Scope(study))
    except RelationError as error:
        yield Finding(place, f"{before}{placed(text, error)}", error.hint)


def _cell_text(cell: Any, sources: Sources) -> object:
    """Return the text of a cell: for a metric the mean, its deviation and n, or the median and n; or a dash."""
    if not isinstance(cell, Expression):
        return cell
    expression = parse_expression(cell.of)
    digits = cell.digits if cell.digits is not None else 2 if isinstance(expression, Formula) else 1
    try:
        found = evaluated(expression, sources.grounds, least=1)
    except (NoValue, ValueError):
        return NO_VALUE
    if isinstance(found, Median) and found.sd is not None:
        return f"median {_number(found.value, digits)} (n = {found.n})"
    spread = "" if found.sd is None else f" \N{PLUS-MINUS SIGN} {_deviation(found.sd, digits)} (n = {found.n})"
    return f"{_number(found.value, digits)}{spread}"


def _runs_behind(texts: Iterable[str], sources: Sources) -> tuple[str, ...]:
    """Return the ids of the runs behind the expressions of a row."""
    scope = Scope(sources.study, sources.grounds.values_of)
    read = [one for text in texts for one in selections(parse_expression(text), scope)]
    return sources.runs(*read)


def _deviation(value: float, digits: int) -> str:
    """Return a deviation with this many decimals; "< 0.1" if it is too small for them."""
    least = 10**-digits
    return f"< {least:.{digits}f}" if 0 < value < least else f"{value:.{digits}f}"


def _number(value: float, digits: int) -> str:
    """Return a number with this many decimals; a number too small for them has as many significant digits."""
    if value == 0 or abs(value) >= 10**-digits:
        return f"{value:.{digits}f}"
    if abs(value) >= SMALL:
        return f"{value:.{max(digits, 1)}g}"
    return f"{value:.{digits}e}"
