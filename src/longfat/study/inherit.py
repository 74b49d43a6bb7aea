# SPDX-License-Identifier: Apache-2.0
"""Inheritance of experiments: given keys override ``like``, whose keys override ``defaults``.

Owns the merging, and the place of each part in the file. Must not know the meaning of keys, except ``path`` and
``topology``, which replace each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from longfat.study.schema.names import Finding, Path, shown, unknown

MERGED = ("topology", "hosts", "probes")  # merged key by key; any other key is replaced as a whole


@dataclass(frozen=True)
class Placed:
    """Plain data with the places of its parts in the file; other parts are below the nearest part with a place."""

    data: dict[str, Any]
    places: Mapping[Path, Path]

    def place(self, path: Path) -> Path:
        """Return the place of a path of the data in the file."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.places:
                return (*self.places[path[:length]], *path[length:])
        return path

    def part(self, path: Path) -> dict[Path, Path]:
        """Return the places of a part of the data and of everything below it."""
        below = {one: at for one, at in self.places.items() if one[: len(path)] == path}
        return {path: self.place(path), **below}


def overlay(base: Placed, over: Placed) -> Placed:
    """Lay one mapping over another: keys in MERGED key by key, at any depth, all other keys whole.

    A mapping with a ``kind`` is complete, and replaces the mapping below it.
    """
    places: dict[Path, Path] = {(): over.place(())}

    def lay(low: Any, high: Any, path: Path) -> Any:
        if not (isinstance(low, dict) and isinstance(high, dict)) or "kind" in high:
            places.update(over.part(path))
            return high
        places[path] = over.place(path)
        result = {}
        for key in [*low, *(key for key in high if key not in low)]:
            below = (*path, key)
            if key in low and key in high:
                result[key] = lay(low[key], high[key], below)
            else:
                places.update((over if key in high else base).part(below))
                result[key] = high[key] if key in high else low[key]
        return result

    data: dict[str, Any] = {}
    for key in [*base.data, *(key for key in over.data if key not in base.data)]:
        if key in MERGED and key in base.data and key in over.data:
            data[key] = lay(base.data[key], over.data[key], (key,))
        else:
            source = over if key in over.data else base
            places.update(source.part((key,)))
            data[key] = source.data[key]
    return Placed(data, places)


def inherited(raws: list[Any], defaults: Any) -> tuple[list[Placed | None], list[Finding]]:
    """Return each experiment with the keys of ``defaults`` and of its ``like``; None if it is not a mapping."""
    findings: list[Finding] = []
    result: list[Placed | None] = []
    named: dict[str, Placed] = {}
    given = dict(defaults) if isinstance(defaults, dict) else {}
    flow = given.pop("flow", None)
    general = Placed(given, {(): ("defaults",)})
    for index, raw in enumerate(raws):
        at = ("experiments", index)
        if not isinstance(raw, dict):
            result.append(None)
            continue
        findings += [fault.below(*at) for fault in _network_faults(raw)]
        base = general
        if isinstance(raw.get("like"), str):
            base = named.get(raw["like"], general)
            if raw["like"] not in named:
                message, hint = unknown("earlier experiment", raw["like"], named)
                findings.append(Finding((*at, "like"), message, hint))
        own = _with_flows(Placed(raw, {(): at}), flow if isinstance(flow, dict) else {})
        placed = overlay(_without_replaced(base, raw), own)
        result.append(placed)
        if isinstance(raw.get("id"), str):
            named.setdefault(raw["id"], placed)
    return result, findings


def _with_flows(own: Placed, defaults: Mapping[str, Any]) -> Placed:
    """Return the experiment with the default keys added to each of its flows."""
    flows = own.data.get("flows")
    if not isinstance(flows, list):
        return own
    filled = [{**defaults, **entry} if isinstance(entry, dict) else entry for entry in flows]
    places: dict[Path, Path] = {
        ("flows", index, key): ("defaults", "flow", key)
        for index, entry in enumerate(flows)
        if isinstance(entry, dict)
        for key in defaults
        if key not in entry
    }
    return Placed({**own.data, "flows": filled}, {**own.places, **places})


def _network_faults(raw: Mapping[str, Any]) -> Iterator[Finding]:
    topology = raw.get("topology")
    if "path" in raw and isinstance(topology, dict) and "kind" in topology:
        message = f"{shown(topology['kind'])} makes this a whole topology, but a path is given too"
        yield Finding(("topology", "kind"), message, "give one of them, or leave `kind` out")


def _without_replaced(base: Placed, raw: Mapping[str, Any]) -> Placed:
    """Return the base without its path if a whole topology replaces it, without its topology if a path does."""
    topology, below = raw.get("topology"), base.data.get("topology")
    gone = ["like", "id"]
    if isinstance(topology, dict) and "kind" in topology:
        gone.append("path")
    if "path" in raw and isinstance(below, dict) and "kind" in below:
        gone.append("topology")
    return Placed({key: value for key, value in base.data.items() if key not in gone}, base.places)
