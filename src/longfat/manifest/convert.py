# SPDX-License-Identifier: Apache-2.0
"""Converts a study of format 1 to format 2: repetitions are hoisted into paths, stacks, defaults and ``like``.

Owns that rewriting. A study of format 1 differs from format 2 only in the number and its lists of artifacts, so a
caller can compare the runs of both. Comments stay above their keys, and the text outside the experiments stays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from longfat.manifest.emit import emitted, inline
from longfat.manifest.fields import REFERENCE
from longfat.manifest.inherit import Placed, laid_over
from longfat.manifest.points import SWEPT_SECTIONS, references
from longfat.manifest.rewrite import rewritten
from longfat.manifest.source import Source

_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,63}")
# The value of a key that is left out, for experiments that differ in it from the new default.
_UNSAID: Mapping[str, Any] = {"repetitions": 1, "memory": None, "kernel": None}
_UNPROBED: Mapping[str, Any] = {
    "sockets": "100 ms",
    "queues": "100 ms",
    "capture": [],
    "capture_at": ["sender"],
    "capture_loss": 0,
    "ping": None,
}
_UNSAID_OF_FLOWS: Mapping[str, Any] = {"from": "", "to": "", "duration": "", "start_jitter": "0 s"}
# The text with which an experiment drops a key of the one that it is like.
_NOTHING: Mapping[str, Any] = {"sweep": {}, "drops": [], "web": [], "udp": [], "flows": [], "pairs_with": None}
_MOST_OVERLAID = 2  # keys in which an experiment may differ from a path and still use it
_LEAST_SAVED = 3  # lines for which a reader is sent to another experiment

# An experiment's list of artifacts, on one line or on several.
_ARTIFACTS = re.compile(r"^( +)artifacts:.*(?:\n\1 .*)*", re.MULTILINE)

Entry = dict[str, Any]


def numbered_anew(text: str) -> str:
    """A study of format 1 as one of format 2 that is as long; its lists of artifacts go."""
    text = _ARTIFACTS.sub(lambda found: "\n" * found[0].count("\n"), text)
    return text.replace("format: 1", "format: 2", 1)


def converted(text: str, source: Source, kept: Mapping[str, set[str]]) -> str:
    """The text of format 2 for a sound study of format 1.

    ``kept`` has the factors that claims and figures of each experiment name, by its id and, for all, by ``""``.
    """
    entries: list[Entry] = deepcopy(source.data["experiments"])
    for entry in entries:
        entry.pop("artifacts", None)  # they follow from claims and figures
    profiles = source.data.get("profiles", {})
    stacks = _take_stacks(entries, [_named(entry, kept, profiles) for entry in entries])
    paths = _take_paths(entries, set(stacks))
    defaults = _take_defaults(entries)
    own = _take_like(entries, defaults)
    sections: list[str] = []
    for name, section in (("paths", paths), ("stacks", stacks), ("defaults", defaults)):
        if section:
            sections += (
                [*emitted({name: section}), ""] if name == "defaults" else [f"{name}:", *emitted(section, 2), ""]
            )
    return rewritten(text, source, "experiments", own, sections)


def _named(entry: Entry, kept: Mapping[str, set[str]], profiles: Mapping[str, Any]) -> set[str]:
    """The factors of an experiment that something else names, and that therefore have to remain factors."""
    names = {*kept.get("", ()), *kept.get(entry["id"], ())}
    for profile in profiles.values():
        for rule in (profile, (profile.get("experiments") or {}).get(entry["id"]) or {}):
            names.update(rule.get("keep") or {})
    for exclusion in entry.get("sweep", {}).get("exclude", ()):
        names.update(exclusion["when"])
    return names


def _take_stacks(entries: list[Entry], named: list[set[str]]) -> dict[str, Entry]:
    """Turn zipped lists that follow from a named one into fields of records that the latter names."""
    stacks: dict[str, Entry] = {}
    for entry, keep in zip(entries, named, strict=True):
        zipped: dict[str, list[Any]] = entry.get("sweep", {}).get("zip", {})
        for head, values in list(zipped.items()):
            if head == "path" or not all(isinstance(value, str) and _NAME.fullmatch(value) for value in values):
                continue
            fields = [name for name in zipped if name != head and name not in keep]
            moved = [name for name in fields if _follows(values, name, zipped[name], stacks)]
            if not moved:
                continue
            for name in moved:
                for value, given in zip(values, zipped.pop(name), strict=True):
                    stacks.setdefault(value, {})[name] = given
            for section in SWEPT_SECTIONS:
                if section in entry:
                    entry[section] = _renamed(entry[section], {name: f"{head}.{name}" for name in moved})
            if len(zipped) == 1 and len(set(values)) == len(values):
                sweep = entry["sweep"]
                del sweep["zip"]
                rest = {key: value for key, value in sweep.items() if key != "product"}
                entry["sweep"] = {"product": {**sweep.get("product", {}), head: values}, **rest}
            break
    return stacks


def _follows(heads: list[Any], name: str, values: list[Any], stacks: Mapping[str, Entry]) -> bool:
    """Whether a list is a function of the named one, and contradicts no record that is there."""
    pairs = {(head, inline(value)) for head, value in zip(heads, values, strict=True)}
    known = all(inline(stacks[head][name]) == value for head, value in pairs if name in stacks.get(head, {}))
    return known and len(pairs) == len(set(heads))


def _renamed(raw: Any, names: Mapping[str, str]) -> Any:
    if isinstance(raw, dict):
        return {key: _renamed(value, names) for key, value in raw.items()}
    if isinstance(raw, list):
        return [_renamed(value, names) for value in raw]
    match = REFERENCE.fullmatch(raw) if isinstance(raw, str) else None
    return f"${{{names[match.group(1)]}}}" if match and match.group(1) in names else raw


def _take_paths(entries: list[Entry], taken: set[str]) -> dict[str, Entry]:
    """Name the topologies that experiments share, and leave each with its differences."""
    shared: list[Entry] = []
    for entry in entries:
        if not any(references(entry["topology"])) and entry["topology"] not in shared:
            shared.append(entry["topology"])
    counts = Counter(use[0] for use in _uses(entries, shared) if use)
    shared = [one for at, one in enumerate(shared) if counts[at] > 1]
    names: list[str] = []
    for one in shared:
        names.append(_path_name(one, {*taken, *names}))
    for index, (entry, use) in enumerate(zip(entries, _uses(entries, shared), strict=True)):
        if use:
            network = {"path": names[use[0]], **({"topology": use[1]} if use[1] else {})}
            entries[index] = {
                new: part
                for key, value in entry.items()
                for new, part in (network.items() if key == "topology" else [(key, value)])
            }
    return dict(zip(names, shared, strict=True))


def _uses(entries: list[Entry], shared: list[Entry]) -> Iterator[tuple[int, Entry] | None]:
    """For each experiment the shared topology that is nearest to its own, and the differences from it."""
    for entry in entries:
        sweep = entry.get("sweep", {})
        found = [(at, own) for at, one in enumerate(shared) if (own := _overlay(one, entry["topology"])) is not None]
        best = min(found, default=None, key=lambda one: len(one[1]))
        # The path of an experiment with a factor of that name is not a path of format 2.
        named = "path" in {**sweep.get("product", {}), **sweep.get("zip", {})}
        yield best if best and len(best[1]) <= _MOST_OVERLAID and not named else None


def _overlay(low: Entry, high: Entry) -> Entry | None:
    """The mapping that turns ``low`` into ``high`` when laid over it; None where none does."""
    if low["kind"] != high["kind"] or not set(low) <= set(high):
        return None
    own = {key: value for key, value in high.items() if low.get(key) != value}
    over = laid_over(Placed({"topology": low}, {}), Placed({"topology": own}, {}))
    return own if over.data["topology"] == high else None


def _path_name(topology: Entry, taken: set[str]) -> str:
    """A name from rate and round-trip time; a reader of the paper can find a better one."""
    parts = [str(topology[key]) for key in ("rate", "rtt") if key in topology]
    name = re.sub(r"[^a-z0-9.-]", "", "-".join([*parts]).lower().replace("bit/s", ""))
    return next(one for one in (name, *(f"{name}-{number}" for number in range(2, 999))) if one not in taken)


def _take_defaults(entries: list[Entry]) -> Entry:
    """Take the commonest value of a key out of all experiments, where that saves more lines than it costs."""
    defaults: Entry = {}
    for key, unsaid in _UNSAID.items():
        counts = Counter(inline(entry[key]) for entry in entries if key in entry)
        common, count = counts.most_common(1)[0] if counts else ("", 0)
        if count - sum(key not in entry for entry in entries) < 2:
            continue
        defaults[key] = next(entry[key] for entry in entries if inline(entry.get(key)) == common)
        for entry in entries:
            if inline(entry.setdefault(key, unsaid)) == common:
                del entry[key]
    if flow := _take_flow_keys([flow for entry in entries for flow in entry.get("flows", ())]):
        defaults["flow"] = flow
    constant = [entry["probes"] for entry in entries if "probes" in entry and not any(references(entry["probes"]))]
    counts = Counter(map(inline, constant))
    common, count = counts.most_common(1)[0] if counts else ("", 0)
    if count >= 2 and count > sum("probes" not in entry for entry in entries):
        default = next(probes for probes in constant if inline(probes) == common)
        defaults["probes"] = default
        for entry in entries:
            given = {**{one: _UNPROBED[one] for one in default}, **entry.get("probes", {})}
            entry["probes"] = {one: value for one, value in given.items() if default.get(one, ...) != value}
            if not entry["probes"]:
                del entry["probes"]
    return defaults


def _take_flow_keys(flows: list[Entry]) -> Entry:
    """Take the commonest value of a key out of all flows, where more have it than would have to deny it."""
    taken: Entry = {}
    for key, unsaid in _UNSAID_OF_FLOWS.items():
        counts = Counter(flow[key] for flow in flows if key in flow and not any(references(flow[key])))
        common, count = counts.most_common(1)[0] if counts else ("", 0)
        if count < 2 or count <= sum(key not in flow for flow in flows):
            continue
        taken[key] = common
        for flow in flows:
            if flow.setdefault(key, unsaid) == common:
                del flow[key]
    return taken


def _take_like(entries: list[Entry], defaults: Entry) -> list[Entry]:
    """Each experiment by its differences from an earlier one, where that is much shorter."""
    result: list[Entry] = []
    for index, entry in enumerate(entries):
        best, length = entry, len(emitted(entry)) - _LEAST_SAVED + 1
        for before, written in zip(entries[:index], result, strict=True):
            own = _difference(before, entry)
            if own is None:
                continue
            # One that is complete in itself is the better one to be sent to.
            cost = len(emitted(own)) + ("like" in written)
            if cost < length:
                best, length = own, cost
        result.append(best)
    return result


def _difference(before: Entry, entry: Entry) -> Entry | None:
    own: Entry = {"id": entry["id"], "like": before["id"]}
    for key in [*entry, *(key for key in before if key not in entry)]:
        if key == "id" or (key in before and before[key] == entry.get(key, ...)):
            continue
        if key not in entry:
            if key not in _NOTHING:
                return None
            own[key] = _NOTHING[key]
        elif key in ("topology", "hosts", "probes") and key in before and "kind" not in entry[key]:
            part = _part(before[key], entry[key])
            if part is None:
                return None
            own[key] = part
        else:
            own[key] = entry[key]
    if "path" in before and "kind" in entry.get("topology", {}):
        own.pop("path", None)
    over = laid_over(Placed(before, {}), Placed(own, {}))
    return own if _same(over.data, entry) else None


def _same(data: Entry, entry: Entry) -> bool:
    return all(
        data.get(key, _NOTHING.get(key)) == entry.get(key, _NOTHING.get(key)) for key in {*data, *entry} - {"like"}
    )


def _part(low: Any, high: Any) -> Any:
    """The part of ``high`` that is not in ``low``; None where ``low`` has keys that ``high`` lacks."""
    if not (isinstance(low, dict) and isinstance(high, dict)) or "kind" in high:
        return high
    if not set(low) <= set(high):
        return None
    parts = {
        key: _part(low[key], value) if key in low else value for key, value in high.items() if low.get(key) != value
    }
    return None if any(value is None and high[key] is not None for key, value in parts.items()) else parts


def factors_in_use(documents: Iterable[Any], factors: set[str]) -> dict[str, set[str]]:
    """The factors that claims and figures name, by the id of the experiment that they name them for, ``""`` for all.

    The factors in a mapping belong to the experiments that it names anywhere.
    """
    used: dict[str, set[str]] = {}

    def note(word: Any, ids: tuple[str, ...]) -> None:
        if isinstance(word, str) and word in factors:
            for one in ids:
                used.setdefault(one, set()).add(word)

    def walk(node: Any, ids: tuple[str, ...]) -> None:
        if isinstance(node, list):
            for item in node:
                walk(item, ids)
        elif isinstance(node, dict):
            ids = tuple(_experiments_in(node)) or ids
            for key, value in node.items():
                note(key, ids)
                if key not in _EXPERIMENTS:
                    walk(value, ids)
        else:
            note(node, ids)

    for document in documents:
        walk(document, ("",))
    return used


_EXPERIMENTS = ("experiment", "experiments")


def _experiments_in(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key in _EXPERIMENTS:
                yield from [value] if isinstance(value, str) else map(str, value or ())
            else:
                yield from _experiments_in(value)
    elif isinstance(node, list):
        for item in node:
            yield from _experiments_in(item)
