# SPDX-License-Identifier: Apache-2.0
"""An experiment at one cell of its sweep, as plain data: derived values, the path, and all references replaced.

Owns the meaning of ``${...}`` and ``path``, and the place in the file where a wrong value can be fixed. Must not check
whether a value is allowed where it is used: the models do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from longfat.study.formulas import Amount, Formula, FormulaError, amount_of
from longfat.study.inherit import Placed, overlay
from longfat.study.schema.fields import REFERENCE
from longfat.study.schema.names import Finding, Path, key_text, nearest, shown, unknown
from longfat.study.sweep import Cell, Level, Records, Sweep
from longfat.study.traffic import SECTIONS
from longfat.system.errors import StudyError

SWEPT_SECTIONS = ("path", "topology", "hosts", *SECTIONS, "probes", "drops", "kernel", "clock_tolerance", "phases")
PACKET = "packet"  # the MTU of the experiment's links, in formulas


@dataclass
class Concrete:
    """The data at a cell, the findings about references, and the places of replaced parts in the file.

    A replaced part has no place (None) if its reference has no value; that is reported elsewhere.
    """

    data: dict[str, Any]
    findings: list[Finding] = field(default_factory=list)
    replaced: dict[Path, Path | None] = field(default_factory=dict)
    places: Mapping[Path, Path] = field(default_factory=dict)

    def placed(self, finding: Finding) -> Finding | None:
        """Return the finding at the place where the user can fix it; None if it is reported elsewhere."""
        for length in range(len(finding.path), 0, -1):
            head = finding.path[:length]
            if head in self.replaced:
                place = self.replaced[head]
                if place is None:
                    return None
                message = f"as {key_text(finding.path)}: {finding.message}"
                return Finding((*place, *finding.path[length:]), message, finding.hint)
        return Finding(Placed(self.data, self.places).place(finding.path), finding.message, finding.hint)


class _Wait(Exception):
    """Lack of a value for a name at this cell; a fault is reported elsewhere."""


class _Fault(Exception):
    """Lack of a field; ``finding`` has place and reason."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class Surroundings:
    """The study's paths, records and MTU, to which references may refer in addition to factors."""

    def __init__(self, paths: Records, records: Records, mtu: str) -> None:
        self.paths, self.records, self.mtu = paths, records, mtu


def concrete(
    placed: Placed, sweep: Sweep, formulas: Mapping[str, Formula], cell: Cell, around: Surroundings
) -> Concrete:
    """Return the experiment at a cell. At an empty cell, references to factors stay unresolved."""
    scope = dict(cell)
    result = Concrete({key: value for key, value in placed.data.items() if key != "sweep"}, [], {}, dict(placed.places))
    _take_path(result, placed, scope, around)
    names = _Names(placed, scope, around)
    to_come = set(sweep.derived)
    for name, formula in formulas.items():
        place = placed.place(("sweep", "derived", name))
        try:
            value = formula.value(lambda one: names.amount(one, to_come, result.data))
        except _Wait:
            continue
        except FormulaError as error:
            result.findings.append(Finding(place, error.message, error.hint))
            continue
        finally:
            to_come.discard(name)
        scope[name] = Level(value, value, ("sweep", "derived", name))
    for section in SWEPT_SECTIONS:
        if section in result.data:
            result.data[section] = _replaced(result.data[section], (section,), names, result)
    return result


def _take_path(result: Concrete, placed: Placed, scope: dict[str, Level], around: Surroundings) -> None:
    """Lay the experiment's topology over the path that it names, and add that path to the names of formulas."""
    given = result.data.get("path")
    if given is None:
        return
    match = REFERENCE.fullmatch(given) if isinstance(given, str) else None
    level = scope.get(match.group(1)) if match else None
    if match and "." in match.group(1):
        message = f"{given!r} is a field of a record; the factor that names a path must be a separate one"
        result.findings.append(Finding(placed.place(("path",)), message, "write `${factor}`"))
    if match and level is None:
        result.replaced |= {("path",): None, ("topology",): None}
        return
    name = level.given if level else given
    place = placed.place(level.path if level else ("path",))
    if level and level.fields is not None and level.fields_path is None:
        fields, fields_path = level.fields, place
    elif isinstance(name, str) and name in around.paths:
        fields_path, fields = around.paths[name]
    else:
        result.findings.append(Finding(place, *unknown("path", name, around.paths)))
        result.replaced |= {("path",): None, ("topology",): None}
        return
    scope.setdefault("path", Level(str(name), str(name), ("path",), fields, fields_path))
    own = {"topology": result.data["topology"]} if "topology" in result.data else {}
    over = Placed(own, {(): placed.place(()), **placed.part(("topology",))})
    merged = overlay(Placed({"topology": dict(fields)}, {("topology",): fields_path}), over)
    result.data["topology"] = merged.data["topology"]
    result.places = {**result.places, **merged.part(("topology",))}


class _Names:
    """The values of names at a cell."""

    def __init__(self, placed: Placed, scope: Mapping[str, Level], around: Surroundings) -> None:
        self._placed, self._scope, self._records, self._mtu = placed, scope, around.records, around.mtu

    def find(self, text: str) -> tuple[Any, Path]:
        """Return the value of ``name`` or ``name.field`` with its place. Raises _Wait or _Fault."""
        root, *keys = text.split(".")
        if root not in self._scope:
            raise _Wait
        level = self._scope[root]
        place = self._placed.place(level.path)
        if not keys:
            return level.given, place
        value: Any = level.fields
        if value is None:
            message = f"{shown(level.given)} is not the name of a path or stack; allowed: {', '.join(self._records)}"
            raise _Fault(Finding(place, message, nearest(level.given, self._records)))
        place = level.fields_path or place
        for index, key in enumerate(keys):
            if not isinstance(value, Mapping) or key not in value:
                which = ".".join([str(level.given), *keys[:index]])
                there = [one for one in value if one != "name"] if isinstance(value, Mapping) else []
                message, _ = unknown("field", key, there)
                raise _Fault(Finding(place, f"{message} in {which!r}", nearest(key, there)))
            value, place = value[key], (*place, key)
        return value, place

    def amount(self, text: str, to_come: set[str], data: Mapping[str, Any]) -> Amount:
        """Return the amount of a name in a formula of the experiment ``data``; names in ``to_come`` are undefined yet.

        Raises StudyError, or _Wait.
        """
        root = text.split(".")[0]
        if root == PACKET and root not in self._scope:
            value: Any = self._packet(data, to_come)
        else:
            try:
                value, _ = self.find(text)
            except _Wait:
                if root in to_come:
                    hint = "formulas use only names that are defined above them"
                    raise StudyError(f"{root!r} has no value here", hint=hint) from None
                raise
            except _Fault as fault:
                raise StudyError(fault.finding.message, hint=fault.finding.hint) from fault
        amount = amount_of(value) if isinstance(value, bool | int | float | str) else None
        if amount is None:
            raise StudyError(f"{text} is {shown(value)}; a formula takes numbers and quantities")
        return amount

    def _packet(self, data: Mapping[str, Any], to_come: set[str]) -> Any:
        """Return the MTU of the experiment, or else of the study. Raises StudyError or _Wait like ``amount``."""
        hosts = data.get("hosts")
        given = hosts.get("mtu") if isinstance(hosts, dict) else None
        if isinstance(given, str) and (match := REFERENCE.fullmatch(given)):
            root = match.group(1).split(".")[0]
            if root in to_come:
                hint = "formulas use only names that are defined above them"
                raise StudyError(f"the MTU, {root!r}, has no value here", hint=hint)
            try:
                return self.find(match.group(1))[0]
            except _Fault:
                raise _Wait from None  # reported where the MTU is replaced
        return self._mtu if given is None else given


def _replaced(raw: Any, path: Path, names: _Names, result: Concrete) -> Any:
    """Return a copy of plain data in which each reference is replaced by its value as given."""
    if isinstance(raw, dict):
        return {key: _replaced(value, (*path, key), names, result) for key, value in raw.items()}
    if isinstance(raw, list):
        return [_replaced(value, (*path, index), names, result) for index, value in enumerate(raw)]
    if not isinstance(raw, str) or "${" not in raw:
        return raw
    result.replaced[path] = None
    match = REFERENCE.fullmatch(raw)
    if not match:
        return raw
    try:
        value, result.replaced[path] = names.find(match.group(1))
    except _Wait:
        return raw
    except _Fault as fault:
        found = fault.finding
        result.findings.append(Finding(found.path, f"as {key_text(path)}: {found.message}", found.hint))
        return raw
    return value


def references(raw: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield every text in plain data that contains ``${...}``, with its path."""
    if isinstance(raw, dict):
        for key, value in raw.items():
            yield from references(value, (*path, key))
    elif isinstance(raw, list):
        for index, value in enumerate(raw):
            yield from references(value, (*path, index))
    elif isinstance(raw, str) and "${" in raw:
        yield path, raw


def reference_findings(
    raw: Mapping[str, Any], sweep: Sweep, formulas: Mapping[str, Formula], misplaced: Collection[str] = ()
) -> list[Finding]:
    """Return findings of unknown references, references within a longer text, and unused factors and formulas.

    A name in ``misplaced`` counts as used: its reference is reported separately. An unused factor of a zip is allowed
    if another one is used: it names the rows.
    """
    factors = [name for _, names in sweep.groups for name in names]
    known = [*factors, *sweep.derived]
    found = []
    used = {*misplaced, *(name.split(".")[0] for formula in formulas.values() for name in formula.names)}
    for section in SWEPT_SECTIONS:
        for path, text in references(raw.get(section), (section,)):
            match = REFERENCE.fullmatch(text)
            if not match:
                hint = "make the whole value a factor"
                message = f"{text!r} is not a reference; ${{factor}} replaces a whole value"
                found.append(Finding(path, message, hint))
                continue
            root = match.group(1).split(".")[0]
            if root not in known and not (root == "path" and raw.get("path")):
                found.append(Finding(path, *unknown("factor", root, known)))
            used.add(root)
    for name, formula in formulas.items():
        for root in dict.fromkeys(one.split(".")[0] for one in formula.names):
            allowed = [*known, *(["path"] if raw.get("path") else []), PACKET]
            if root not in allowed:
                found.append(Finding(("sweep", "derived", name), *unknown("name", root, allowed)))
    if "path" in factors and raw.get("path") not in (None, "${path}"):
        message = f"{shown(raw['path'])} is not the factor of that name, but a path has one name"
        found.append(Finding(("path",), message, 'write "${path}", or call the factor something else'))
    unnamed: list[tuple[Path, Mapping[str, Any]]] = [*sweep.groups, (("derived",), sweep.derived)]
    for group, names in unnamed:
        for name in names:
            if name not in used and not (group[0] == "zip" and used & set(names)):
                what = "derived value" if group == ("derived",) else "factor"
                message = f"{what} {name!r} is never used; write ${{{name}}} instead of its value"
                found.append(Finding(("sweep", *group, name), message))
    return found
