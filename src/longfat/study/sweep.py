# SPDX-License-Identifier: Apache-2.0
"""A sweep: its keys, its expansion to points, and the checks that need only the sweep itself.

Must not check whether a value is allowed where it is used: the models do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import ConfigDict, Discriminator, Field, Tag

from longfat.spec.runspec import Scalar
from longfat.spec.units import read_quantity
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding, Path
from longfat.system.errors import StudyError

MAX_POINTS = 20_000  # more is a mistake: it would run for days


class Record(f.Closed):
    """An inline record as the value of a factor, which is its ``name``."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any]

    name: f.Text = Field(description="value of the factor at this level")

    @property
    def fields(self) -> dict[str, Any]:
        """All fields except the name."""
        return dict(self.__pydantic_extra__)


Value = Annotated[
    Annotated[Record, Tag("<record>")] | Annotated[f.FactorValue, Tag("<value>")],
    Discriminator(lambda given: "<record>" if isinstance(given, dict | Record) else "<value>"),
]
Factors = dict[f.FactorName, tuple[Value, ...]]


class Sweep(f.Closed):
    """The points at which an experiment is run: the product of all lists, and of the rows of each zip."""

    product: Factors = Field(default={}, description="every combination")
    zipped: Annotated[
        Annotated[Factors, Tag("<one>")] | Annotated[tuple[Factors, ...], Tag("<several>")],
        Discriminator(lambda given: "<several>" if isinstance(given, list | tuple) else "<one>"),
    ] = Field(
        default={},
        alias="zip",
        description="lists of equal length, read row by row, or a list of such mappings, each a separate axis; a "
        "list that nothing refers to names the rows",
    )
    derived: dict[f.FactorName, f.Text] = Field(
        default={}, description="values that follow from the factors and the path, each by its formula"
    )

    @property
    def zips(self) -> list[tuple[tuple[str | int, ...], Factors]]:
        """Each zip with its path."""
        if isinstance(self.zipped, dict):
            return [(("zip",), self.zipped)] if self.zipped else []
        return [(("zip", index), factors) for index, factors in enumerate(self.zipped)]

    @property
    def groups(self) -> list[tuple[tuple[str | int, ...], Factors]]:
        """The product and each zip, with their paths."""
        return [(("product",), self.product), *self.zips]


@dataclass(frozen=True)
class Level:
    """One value of a factor: in base units, as given, its place, and the fields of the record that it names.

    ``path`` is the place of the value in the sweep, ``fields_path`` the place of a record outside the sweep.
    """

    value: Scalar
    given: Scalar
    path: Path
    fields: Mapping[str, Any] | None = field(default=None, compare=False)
    fields_path: Path | None = None


Cell = dict[str, Level]
Records = Mapping[str, tuple[Path, Mapping[str, Any]]]
"""All named records with their places in the document."""


def base_value(given: Scalar) -> Scalar:
    """Return a factor's value as in the lock: quantities in base units, others as given."""
    if not isinstance(given, str):
        return given
    try:
        quantity = read_quantity(given)
    except StudyError:
        return given  # reported where the factor is used, with the values allowed there
    return quantity.value if quantity else given


def same(one: Scalar, other: Scalar) -> bool:
    """Return whether two factor values are equal; unlike in Python, true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def factor_levels(sweep: Sweep, records: Records | None = None) -> dict[str, tuple[Level, ...]]:
    """Return the values of each factor in the manifest's order, with the records that they name."""
    return {
        name: tuple(_level(given, ("sweep", *group, name, index), records or {}) for index, given in enumerate(values))
        for group, factors in sweep.groups
        for name, values in factors.items()
    }


def _level(given: Scalar | Record, path: Path, records: Records) -> Level:
    if isinstance(given, Record):
        return Level(given.name, given.name, path, given.fields)
    place, fields = records.get(given, (None, None)) if isinstance(given, str) else (None, None)
    return Level(base_value(given), given, path, fields, place)


def grid(sweep: Sweep, levels: Mapping[str, tuple[Level, ...]]) -> list[Cell]:
    """Return all points; one empty point if nothing is varied."""
    axes: list[list[Cell]] = [[{name: level} for level in levels[name]] for name in sweep.product]
    for _, names in sweep.zips:
        rows = zip(*(levels[name] for name in names), strict=True)
        axes.append([dict(zip(names, row, strict=True)) for row in rows])
    return [
        {name: level for cell in combination for name, level in cell.items()}
        for combination in itertools.product(*axes)
    ]


def sweep_findings(sweep: Sweep) -> list[Finding]:
    """Return the faults of a sweep; without any, ``grid`` can expand it."""
    found = [*_double_factors(sweep), *_shape_findings(sweep)]
    levels = factor_levels(sweep)
    found += [*_repeated_values(sweep, levels), *_mixed_values(levels)]
    return found or list(_repeated_rows(sweep, levels))


def _double_factors(sweep: Sweep) -> Iterator[Finding]:
    """Yield names that occur in two places of a sweep."""
    taken = dict.fromkeys(sweep.product, "product")
    for group, factors in sweep.zips:
        for name in factors:
            if name in taken:
                message = f"{name!r} is also in {taken[name]}; a factor belongs to one of them"
                yield Finding(("sweep", *group, name), message)
            taken.setdefault(name, "another zip")
    for name in sweep.derived:
        if name in taken:
            yield Finding(("sweep", "derived", name), f"{name!r} is also a factor; a name has one meaning")


def _shape_findings(sweep: Sweep) -> Iterator[Finding]:
    """Yield empty lists, zips of unequal length, and too many points."""
    points = math.prod(len(values) for values in sweep.product.values())
    for group, factors in sweep.groups:
        for name, values in factors.items():
            if not values:
                message = "has no values, so the sweep yields nothing; give at least one"
                yield Finding(("sweep", *group, name), message)
    for group, factors in sweep.zips:
        lengths = {name: len(values) for name, values in factors.items()}
        if len(set(lengths.values())) > 1:
            listing = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            yield Finding(("sweep", *group), f"lists of unequal length: {listing}; they are read in parallel")
        points *= max([1, *lengths.values()])
    if points > MAX_POINTS:
        yield Finding(("sweep",), f"yields {points} points; allowed: up to {MAX_POINTS}")


def _repeated_values(sweep: Sweep, levels: Mapping[str, tuple[Level, ...]]) -> list[Finding]:
    """Return findings of values of a product that are given twice."""
    return [
        Finding(level.path, f"{level.given!r} is given twice; each value is allowed once")
        for name in sweep.product
        for index, level in enumerate(levels[name])
        if any(same(level.value, earlier.value) and _alike(level, earlier) for earlier in levels[name][:index])
    ]


def _mixed_values(levels: Mapping[str, tuple[Level, ...]]) -> Iterator[Finding]:
    """Yield values whose dimension differs from an earlier one's while the number in base units is the same."""
    for values in levels.values():
        for index, level in enumerate(values):
            for earlier in values[:index]:
                if same(level.value, earlier.value) and not _alike(level, earlier):
                    message = f"{level.given!r} and {earlier.given!r} are the same number in base units"
                    yield Finding(level.path, message, "records with names tell them apart")
                    break


def _alike(one: Level, other: Level) -> bool:
    """Return whether two values have one dimension."""
    if isinstance(one.value, bool | str):
        return True
    kinds = (type(read_quantity(level.given) if isinstance(level.given, str) else None) for level in (one, other))
    return len(set(kinds)) == 1


def _repeated_rows(sweep: Sweep, levels: Mapping[str, tuple[Level, ...]]) -> Iterator[Finding]:
    """Yield rows of a zip that are given twice."""
    for _, names in sweep.zips:
        rows = list(zip(*(levels[name] for name in names), strict=True))
        for index, row in enumerate(rows):
            if any(all(same(a.value, b.value) for a, b in zip(row, other, strict=True)) for other in rows[:index]):
                yield Finding(row[0].path, f"row {index + 1} of zip is given twice; each row is allowed once")


def common_unit(labels: Sequence[str]) -> str | None:
    """Return the unit of the last of some values if all can be in it; None for numbers and words."""
    unit = labels[-1].lstrip("0123456789. ") if labels else ""
    return unit if unit and all(has_unit(label, unit) for label in labels) else None


def has_unit(label: str, unit: str) -> bool:
    """Return whether a value is a quantity that can be in the unit."""
    value = read_quantity(label)
    return value is not None and unit in value.units
