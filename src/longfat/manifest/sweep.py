# SPDX-License-Identifier: Apache-2.0
"""The points of a sweep, and the replacement of ``${factor}`` by their values.

Owns expansion of product, zip and exclusion. It works on plain data and must not judge whether a value
fits the place where it is used: the models do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from longfat.errors import StudyError
from longfat.manifest.fields import REFERENCE
from longfat.manifest.models import Exclusion, Sweep
from longfat.manifest.names import Finding, Path, nearest, unknown
from longfat.runspec import Scalar
from longfat.units import read_quantity

SWEPT_SECTIONS = ("topology", "hosts", "flows", "web", "udp", "probes", "drops")
MAX_POINTS = 20_000  # a sweep of more is a slip: it would run for days


@dataclass(frozen=True)
class Level:
    """One value of a factor: in base units, as given, and where it stands in the experiment."""

    value: Scalar
    given: Scalar
    path: Path


Cell = dict[str, Level]


def base_value(given: Scalar) -> Scalar:
    """A factor's value as the lock has it: quantities in base units, all else as given."""
    if not isinstance(given, str):
        return given
    try:
        quantity = read_quantity(given)
    except StudyError:
        return given  # the place where the factor is used reports it, with what is allowed there
    return quantity.value if quantity else given


def same(one: Scalar, other: Scalar) -> bool:
    """Whether two factor values are one: Python's ``True == 1`` does not count."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def factor_levels(sweep: Sweep) -> dict[str, tuple[Level, ...]]:
    """The values of every factor, in the manifest's order."""
    return {
        name: tuple(
            Level(base_value(given), given, ("sweep", group, name, index)) for index, given in enumerate(values)
        )
        for group, factors in (("product", sweep.product), ("zip", sweep.zipped))
        for name, values in factors.items()
    }


def grid(sweep: Sweep) -> list[Cell]:
    """All points before exclusion; one empty point when nothing is varied."""
    levels = factor_levels(sweep)
    axes: list[list[Cell]] = [[{name: level} for level in levels[name]] for name in sweep.product]
    if sweep.zipped:
        rows = zip(*(levels[name] for name in sweep.zipped), strict=True)
        axes.append([dict(zip(sweep.zipped, row, strict=True)) for row in rows])
    return [
        {name: level for cell in combination for name, level in cell.items()}
        for combination in itertools.product(*axes)
    ]


def exclusion_of(cell: Cell, sweep: Sweep) -> Exclusion | None:
    """The first exclusion that a point meets, or None."""
    return next((exclusion for exclusion in sweep.exclude if _meets(cell, exclusion.when)), None)


def _meets(cell: Cell, when: Mapping[str, Scalar]) -> bool:
    return all(name in cell and same(cell[name].value, base_value(given)) for name, given in when.items())


def references(raw: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every text in plain data that holds ``${...}``, with its path."""
    if isinstance(raw, dict):
        for key, value in raw.items():
            yield from references(value, (*path, key))
    elif isinstance(raw, list):
        for index, value in enumerate(raw):
            yield from references(value, (*path, index))
    elif isinstance(raw, str) and "${" in raw:
        yield path, raw


def swept_references(raw: Mapping[str, Any]) -> list[tuple[Path, str]]:
    """The references of an experiment in the sections where they may stand."""
    return [found for section in SWEPT_SECTIONS for found in references(raw.get(section), (section,))]


def replaced(raw: Any, cell: Cell) -> Any:
    """A copy of plain data in which every reference to a factor of ``cell`` has its value as given."""
    if isinstance(raw, dict):
        return {key: value if key == "sweep" else replaced(value, cell) for key, value in raw.items()}
    if isinstance(raw, list):
        return [replaced(value, cell) for value in raw]
    match = REFERENCE.fullmatch(raw) if isinstance(raw, str) else None
    return cell[match.group(1)].given if match and match.group(1) in cell else raw


def sweep_findings(sweep: Sweep) -> list[Finding]:
    """What is wrong with a sweep in itself; when nothing is, ``grid`` can expand it."""
    found = [
        Finding(("sweep", "zip", name), f"{name!r} is in product too; a factor stands in one of them")
        for name in sweep.zipped
        if name in sweep.product
    ]
    for group, factors in (("product", sweep.product), ("zip", sweep.zipped)):
        for name, values in factors.items():
            if not values:
                message = "has no values, so the sweep yields nothing; give at least one"
                found.append(Finding(("sweep", group, name), message))
    lengths = {name: len(values) for name, values in sweep.zipped.items()}
    if len(set(lengths.values())) > 1:
        listing = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        found.append(Finding(("sweep", "zip"), f"lists of unequal length: {listing}; they go side by side"))
    points = math.prod(len(values) for values in sweep.product.values()) * max([1, *lengths.values()])
    if points > MAX_POINTS:
        found.append(Finding(("sweep",), f"yields {points} points; allowed: up to {MAX_POINTS}"))
    found += [*_repeated_values(sweep), *_unknown_values(sweep)]
    return found or [*_repeated_rows(sweep), *_vain_exclusions(sweep)]


def _repeated_values(sweep: Sweep) -> list[Finding]:
    """Values of a product factor that are given twice."""
    levels = factor_levels(sweep)
    return [
        Finding(level.path, f"{level.given!r} is given twice; each value stands once")
        for name in sweep.product
        for index, level in enumerate(levels[name])
        if any(same(level.value, earlier.value) for earlier in levels[name][:index])
    ]


def _repeated_rows(sweep: Sweep) -> list[Finding]:
    """Rows of the zip that are given twice."""
    levels = factor_levels(sweep)
    rows = list(zip(*(levels[name] for name in sweep.zipped), strict=True))
    return [
        Finding(row[0].path, f"row {index + 1} of zip is given twice; each row stands once")
        for index, row in enumerate(rows)
        if any(all(same(a.value, b.value) for a, b in zip(row, other, strict=True)) for other in rows[:index])
    ]


def _unknown_values(sweep: Sweep) -> list[Finding]:
    """Factors and values of exclusions that the sweep does not have."""
    levels = factor_levels(sweep)
    return [
        fault.below("sweep", "exclude", index, "when")
        for index, exclusion in enumerate(sweep.exclude)
        for name, given in exclusion.when.items()
        if (fault := value_fault(name, given, levels))
    ]


def _vain_exclusions(sweep: Sweep) -> list[Finding]:
    """Exclusions that match no point, and a sweep that has none left."""
    cells = grid(sweep)
    found = [
        Finding(("sweep", "exclude", index, "when"), "matches no point of the sweep", "mend it or leave it out")
        for index, exclusion in enumerate(sweep.exclude)
        if not any(_meets(cell, exclusion.when) for cell in cells)
    ]
    if all(exclusion_of(cell, sweep) for cell in cells):
        found.append(Finding(("sweep",), f"yields nothing: all of its {len(cells)} points are excluded"))
    return found


def value_fault(name: str, given: Scalar, levels: Mapping[str, tuple[Level, ...]]) -> Finding | None:
    """What is wrong with naming a factor's value, or None; the path is the factor's name."""
    if name not in levels:
        return Finding((name,), *unknown("factor", name, levels))
    if any(same(level.value, base_value(given)) for level in levels[name]):
        return None
    texts = [str(level.given) for level in levels[name]]
    message = f"{name} never is {given!r}; its values: {', '.join(texts)}"
    return Finding((name,), message, nearest(given, texts))


def reference_findings(raw: Mapping[str, Any], factors: list[str]) -> list[Finding]:
    """References that name no factor or are part of a longer text, and factors that nothing refers to.

    A zipped factor beside others that are used may stand for nothing but the name of its row.
    """
    found, used = [], set()
    for path, text in swept_references(raw):
        match = REFERENCE.fullmatch(text)
        if not match:
            hint = "make the whole value a factor"
            message = f"{text!r} is not a reference; ${{factor}} stands for a whole value"
            found.append(Finding(path, message, hint))
        elif match.group(1) not in factors:
            found.append(Finding(path, *unknown("factor", match.group(1), factors)))
        used.update(REFERENCE.findall(text))
    for name in factors:
        sweep = raw["sweep"]
        zipped = sweep.get("zip", {})
        if name not in used and not (name in zipped and used & set(zipped)):
            group = "product" if name in sweep.get("product", {}) else "zip"
            message = f"factor {name!r} is never used; write ${{{name}}} where its value belongs"
            found.append(Finding(("sweep", group, name), message))
    return found
