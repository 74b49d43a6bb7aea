# SPDX-License-Identifier: Apache-2.0
"""``show``: one run with its settings, gates, metrics and files. Writes only temporary files."""

from __future__ import annotations

import json
import math
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from longfat.cli.console import Output, say, say_place
from longfat.cli.find_run import Found, find_run
from longfat.cli.options import InResults, RunName
from longfat.dataset.build import build_dataset
from longfat.dataset.load import Dataset, Run, load_dataset
from longfat.evidence.collect import value_of
from longfat.execute.record.verify import read_record
from longfat.metrics import METRICS
from longfat.metrics.quantities import Selection
from longfat.plan import Plan
from longfat.plan.lockfile import LOCK, write_lock
from longfat.spec.network import lay_out
from longfat.spec.runspec import RunSpec

SHOWN = {"bps": (1e6, "Mbit/s"), "us": (1e3, "ms")}  # units of settings on the screen, by suffix in the data
_WORDS = {"ok": "valid: every gate passed", "missing": "not run"}
_COLOURS = {"ok": "green", "missing": None}

Setting = tuple[str, str, Any, Any]
"""An interface, a flow or nodes; the name of the setting; its value as declared and as achieved, None if unknown."""


def show(out: Output, run: RunName, results: InResults = None) -> bool:
    """Print one run: settings declared and achieved, gates, metrics and files."""
    facts = facts_of(find_run(run, results))
    _print(facts, out)
    out.result(**facts)
    return bool(facts["status"] == "ok")


def facts_of(found: Found) -> dict[str, Any]:
    """Return the facts of a run as plain data, in base units. Raises RecordError on a damaged record."""
    spec, folder, row = found.spec, found.folder, found.row
    run_id = row.run_id if row is not None and folder is None else spec.run_id
    facts: dict[str, Any] = {
        "run": run_id,
        "study": found.study,
        "experiment": found.experiment,
        "scenario": found.scenario,
        "repetition": found.repetition,
        "factors": dict(found.factors or {}),
        "stack": found.stack,
        "profile": found.profile,
        "seed": spec.seed,
        "pins": dict(spec.pins),
        "again": f"./just again {run_id[:8]}",
        "folder": None,
        "status": "missing",
        "reason": None,
        "metrics": {},
        "files": [],
    }
    if folder is not None:
        facts |= _recorded(found, folder)
    elif row is not None:
        facts |= {"status": "invalid" if row.reason else "ok", "reason": row.reason}
        facts |= {"wall_seconds": row.seconds, "metrics": dict(row.values)}
    achieved = _json(folder / "achieved.json") if folder else {}
    settings = (*_interfaces(spec, achieved), *_flows(spec, achieved, folder), *_sysctls(spec, achieved))
    names = ("part", "name", "declared", "achieved")
    return facts | {"settings": [dict(zip(names, one, strict=True)) for one in settings]}


def _recorded(found: Found, folder: Path) -> dict[str, Any]:
    """Return the facts of a record, with its gates and metrics."""
    record, run = read_record(folder), _json(folder / "run.json")
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    with tempfile.TemporaryDirectory(prefix="longfat-show-") as scratch:
        dataset = _dataset_of(found, folder.resolve(), Path(scratch))
        (judged,) = dataset.runs
        metrics = _metrics(dataset, judged) if judged.status == "ok" else {}
        impossible = sorted(dataset.impossible.get(judged.run_id, ()))
    return {
        "folder": str(folder),
        "status": "invalid" if impossible else judged.status,
        "reason": "; ".join(impossible) or judged.reason or record.reason,
        "kernel_release": _json(folder / "environment.json").get("kernel_release"),
        "started_utc": run.get("started_utc"),
        "wall_seconds": run.get("wall_seconds"),
        "metrics": metrics,
        "files": [{"name": path.relative_to(folder).as_posix(), "bytes": path.stat().st_size} for path in files],
    }


def _dataset_of(found: Found, folder: Path, place: Path) -> Dataset:
    """Return a dataset of one run, with the gates applied."""
    (place / "raw").mkdir()
    (place / "raw" / folder.name).symlink_to(folder)
    pins, runs = found.spec.pins, (found.planned(found.spec),)
    plan = Plan(found.study, found.profile or "unknown", found.stack or "unknown", found.spec.seed, "", "", pins, runs)
    write_lock(plan, place / LOCK)
    build_dataset(place)
    return load_dataset(place)


def _metrics(dataset: Dataset, run: Run) -> dict[str, float]:
    """Return the value of every metric that needs no parameters, by name."""
    names = (name for name, one in METRICS.items() if one.shipped and not (one.required or one.over))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # from numpy, about metrics without data
        values = {name: value_of(dataset, run, Selection(name, run.experiment)) for name in names}
    return {name: value for name, value in values.items() if not isinstance(value, str) and math.isfinite(value)}


def _interfaces(spec: RunSpec, achieved: Mapping[str, Any]) -> Iterator[Setting]:
    back = {item["interface"]: item for item in achieved.get("interfaces", ())}
    for port in lay_out(spec).all_ports():
        found, name, egress = back.get(port.name, {}), f"{port.name} to {port.peer}", port.egress
        declared: dict[str, Any] = {
            "mtu_bytes": port.mtu_bytes,
            "rate_bps": egress.wire_bps,
            "delay_us": egress.wire_delay_ns // 1000,
        }
        if egress.rate_bps:
            queue = egress.queue
            declared |= {
                "queue_kind": queue.kind,
                "limit_packets": queue.limit_packets,
                "limit_bytes": queue.limit_bytes,
            }
        drawn = ("clock_ppb", "distance_ns", "processing_ns")
        declared |= {key: value for key in drawn if (value := getattr(egress, key))}
        if egress.card and egress.card.moderation_us:  # interrupts, or aggregation
            declared["held_us"] = egress.card.moderation_us
            slots = [one["slot"] // 1000 for one in found.get("card", ()) if "slot" in one]
            found = found | {"held_us": slots[0] if slots else None}
        yield from _compared(name, declared, found, ("drops", "sent_bytes"))


def _flows(spec: RunSpec, achieved: Mapping[str, Any], folder: Path | None) -> Iterator[Setting]:
    sockets = {item["flow"]: item for item in achieved.get("flows", ())}
    receiving = achieved.get("receive_buffers", {})
    reports = {item["flow"]: item for item in (_json(folder / "flows.json", []) if folder else [])}
    for flow in spec.flows:
        socket = sockets.get(flow.name, {})
        buffers = {"window_bytes": receiving.get(flow.name), "send_window_bytes": socket.get("send_buffer_bytes")}
        # Windows are half of the buffers, because Linux doubles them (socket(7)).
        found = socket | {key: size // 2 for key, size in buffers.items() if size} | reports.get(flow.name, {})
        declared = {
            "cca": flow.cca,
            "cca_parameters": spec.cca_parameters(flow),
            "window_bytes": flow.window_bytes,
            "send_window_bytes": flow.send_window_bytes or flow.window_bytes,
            "streams": flow.streams,
            "start_us": flow.start_us,
            "duration_us": flow.duration_us,
        }
        measured = ("goodput_bps", "bytes_received", "base_rtt_us")
        yield from _compared(f"{flow.name}: {flow.sender} to {flow.receiver}", declared, found, measured)


def _compared(
    name: str, declared: Mapping[str, Any], found: Mapping[str, Any], measured: Iterable[str]
) -> Iterator[Setting]:
    """Yield declared settings with their achieved values, then the available measurements."""
    yield from ((name, key, value, found.get(key)) for key, value in declared.items())
    yield from ((name, key, None, found[key]) for key in measured if key in found)


def _sysctls(spec: RunSpec, achieved: Mapping[str, Any]) -> Iterator[Setting]:
    """Yield each value of each sysctl, with all nodes that have it."""
    back = achieved.get("nodes", {})
    nodes: dict[tuple[str, str, str | None], list[str]] = {}
    for node in spec.nodes:
        found = back.get(node.name, {}).get("sysctls", {})
        for name, value in sorted(node.sysctls.items()):
            nodes.setdefault((name, value, found.get(name)), []).append(node.name)
    for (name, declared, achieved_value), of in nodes.items():
        yield ", ".join(of), name, declared, achieved_value


def _json(path: Path, default: Any = None) -> Any:
    """Return the data of a file of a record; the default if a failed run has none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {} if default is None else default


def _print(facts: Mapping[str, Any], console: Console) -> None:
    say(console, f"run {facts['run']}")
    head = f"{facts['study']}: {facts['scenario']}, repetition {facts['repetition']}"
    say(console, f"  {head}; stack {facts['stack']}, profile {facts['profile']}, seed {facts['seed']}")
    pins = ", ".join(f"{name} {value[:12]}" for name, value in sorted(facts["pins"].items()))
    release = facts.get("kernel_release")
    say(console, f"  {pins}" + (f" ({release})" if release else ""))
    status = facts["status"]
    parts = [_WORDS.get(status, status) + (f": {facts['reason']}" if facts["reason"] else "")]
    parts += [f"took {facts['wall_seconds']:.1f} s"] if facts.get("wall_seconds") is not None else []
    parts += [f"started {facts['started_utc']}"] if facts.get("started_utc") else []
    say(console, f"  {', '.join(parts)}", _COLOURS.get(status, "red"))
    _print_table(console, "settings", _setting_rows(facts["settings"]), "place", "setting", "declared", "achieved")
    _print_table(console, "metrics", _metric_rows(facts["metrics"]), "metric", "value")
    if facts["folder"]:
        say_place(console, f"{len(facts['files'])} files", Path(facts["folder"]))
        for file in facts["files"]:
            say(console, f"  {file['name']}  {_plain(file['bytes'])} B")
    elif status != "missing":
        say(console, "its raw files are not here; the evidence has the values that claims need")
    say(console, f"repeat it: {facts['again']}")


def _print_table(console: Console, title: str, rows: Iterable[tuple[str, ...]], *columns: str) -> None:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    if table.row_count:
        console.print(table)


def _setting_rows(settings: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of nonzero settings, with each part named once."""
    before = ""
    for one in settings:
        if one["declared"] or one["achieved"]:
            part = "" if one["part"] == before else one["part"]
            name, _, suffix = one["name"].rpartition("_")
            numbers = [one[side] for side in ("declared", "achieved")]
            long = suffix == "us" and all(isinstance(value, int) and value >= 1e6 for value in numbers)
            factor, unit = (1e6, "s") if long else SHOWN.get(suffix, (1, ""))
            if unit and all(isinstance(value, int | float) or value is None for value in numbers):
                texts = ["" if value is None else f"{value / factor:.7g} {unit}" for value in numbers]
                yield part, name.replace("_", " "), *texts
            else:
                yield part, one["name"], *map(_plain, numbers)
            before = one["part"]


def _metric_rows(metrics: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, value in metrics.items():
        one = METRICS.get(name.partition("@")[0])  # in the evidence a name is METRIC@DEFINITION
        text = f"{value:.6g}" if isinstance(value, float) else str(value)
        yield name, f"{text} {one.unit if one else ''}".rstrip()


def _plain(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value).lower()
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(inner)}" for key, inner in value.items())
    return str(value)
