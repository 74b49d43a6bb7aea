# SPDX-License-Identifier: Apache-2.0
"""Merging of the parts of a run, one folder per host, into one set of raw files (docs/data.md).

Loses nothing: two parts with the same entry are an error.
"""

from __future__ import annotations

import dataclasses
import heapq
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from longfat.guest.files import report_of, write_json
from longfat.guest.kinds.kind import write_reports
from longfat.guest.udp import due_bytes
from longfat.spec.network import smallest_mtu_bytes
from longfat.spec.runspec import RunSpec
from longfat.system.errors import RigError
from longfat.system.files import read_plain

FOLDERS = ("iperf", "captures", "outstanding", "throughput")
COUNTED = ("sent_packets", "received_packets", "arrived_packets")  # of UDP traffic, by the host of an end
MAX_COUNT = 1 << 53
MAX_LINE = 1 << 16
MAX_BYTES = 256 << 20
TABLES = ("sockets.csv", "cca_state.csv", "queues.csv", "arrivals.csv", "pings.csv", "datagrams.csv")


def join_parts(spec: RunSpec, parts: Mapping[str, Path], folder: Path, shares_us: Mapping[str, int]) -> None:
    """Write the run's raw files into ``folder`` from the files of each host.

    ``shares_us`` has, for each interface, the delay of its cable itself. Raises RigError if a file is missing or
    unreadable, or if two hosts report the same flow or node.
    """
    try:
        for name in (*FOLDERS, *(["web"] if spec.web else [])):
            _gather_files(name, parts, folder / name)
        for name in TABLES:
            _merge_tables([part / name for part in parts.values() if (part / name).exists()], folder / name)
        achieved = join_achieved(spec, [_read(part / "achieved.json") for part in parts.values()])
        for interface in achieved["interfaces"]:
            if share_us := shares_us.get(interface["interface"]):
                interface |= {"delay_us": interface["delay_us"] + share_us, "own_delay_us": share_us}
        write_json(folder / "achieved.json", achieved)
        write_json(folder / "counters.json", _union([_read(part / "counters.json") for part in parts.values()]))
        write_json(folder / "environment.json", _read(next(iter(parts.values())) / "environment.json"))
        if spec.udp:
            write_json(folder / "udp.json", [*_joined_udp(spec, [_read(part / "udp.json") for part in parts.values()])])
        _require_web(spec, folder, achieved)
        write_reports(spec, folder)
        ends = [_read(part / "outcome.json")["end_us"] for part in parts.values()]
        write_json(folder / "outcome.json", {"status": "ok", "reason": None, "end_us": max(ends)})
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise RigError(f"the hosts' files do not make one run: {type(error).__name__}: {error}") from error


def join_achieved(spec: RunSpec, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge the settings that the hosts read back; before the start there are only nodes and interfaces.

    The wait for a CPU is the longest of all hosts. Raises ValueError on a duplicate node.
    """
    order = [flow.name for flow in spec.flows]
    flows = [flow for part in parts for flow in part.get("flows", [])]
    waits = [_waited_us(part) for part in parts]
    return {
        "nodes": _union([part["nodes"] for part in parts]),
        "interfaces": [interface for part in parts for interface in part["interfaces"]],
        "flows": sorted(flows, key=lambda flow: order.index(flow["flow"])),
        "web": [
            {"web": str(one["web"]), "ccas": [str(cca) for cca in one["ccas"]]}
            for part in parts
            for one in part.get("web", [])
        ],
        "receive_buffers": _union([part.get("receive_buffers", {}) for part in parts]),
        "capture": _union([part.get("capture", {}) for part in parts]),
        "cpu_pressure_us": max((wait for wait in waits if wait is not None), default=None),
        "memory_pressure": sum(part.get("memory_pressure", 0) for part in parts),
    }


def _waited_us(part: Mapping[str, Any]) -> int | None:
    """Return a host's wait for a CPU, at most the time of programs outside the run, as in ``cpu_sufficed``."""
    given = [us for name in ("cpu_pressure_us", "others_cpu_us") if (us := part.get(name)) is not None]
    return min(given) if part.get("cpu_pressure_us") is not None else None


def _joined_udp(spec: RunSpec, parts: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield the report of each UDP traffic with the packets that its ends counted.

    Raises ValueError on a number that is none, or that two hosts or no host reports.
    """
    packet_bytes = smallest_mtu_bytes(spec)
    for number, one in enumerate(spec.udp):
        counted = _union([part[number] for part in parts])
        due = round(due_bytes(dataclasses.asdict(one), one.duration_us / 1e6) / packet_bytes)
        found = report_of("udp", one) | {"packet_bytes": packet_bytes, "due_packets": due}
        _require_counts(one.name, {name: counted.get(name) for name in COUNTED})
        yield found | {name: counted[name] for name in COUNTED}


def _require_web(spec: RunSpec, folder: Path, achieved: Mapping[str, Any]) -> None:
    """Raise ValueError unless one host read the algorithms of each web server, and the users have counts."""
    if (seen := sorted(one["web"] for one in achieved["web"])) != sorted(one.name for one in spec.web):
        raise ValueError(f"the servers whose algorithms were read are {', '.join(seen) or 'none'}")
    for one in spec.web:
        found = _read(folder / f"web/{one.name}.users.json")
        _require_counts(one.name, {name: found[name] for name in ("bytes_received", "replies", "unfinished")})
        _require_counts(one.name, found["errors"])
        if found["mean_reply_us"] is not None:
            _require_counts(one.name, {"mean_reply_us": found["mean_reply_us"]})


def _require_counts(traffic: str, counts: Mapping[str, Any]) -> None:
    """Raise ValueError unless each member is a count."""
    for name, count in counts.items():
        if type(count) is not int or not 0 <= count < MAX_COUNT:
            raise ValueError(f"{name} of {traffic} is {count!r}")


def _union(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge all entries of all parts. Raises ValueError on a duplicate."""
    union: dict[str, Any] = {}
    for part in parts:
        if twice := sorted(union.keys() & part.keys()):
            raise ValueError(f"two hosts report {', '.join(twice)}")
        union |= part
    return union


def _gather_files(name: str, parts: Mapping[str, Path], target: Path) -> None:
    target.mkdir()
    for part in parts.values():
        for path in sorted((part / name).iterdir()):
            if (target / path.name).exists():
                raise ValueError(f"two hosts have {name}/{path.name}")
            shutil.move(path, target / path.name)


def _merge_tables(sources: Sequence[Path], target: Path) -> None:
    """Merge tables, whose first column is the time in microseconds, in the order of time."""
    if not sources:
        return
    files = [path.open(encoding="utf-8") for path in sources]
    try:
        headers = {file.readline(MAX_LINE) for file in files}
        (header,) = headers
        with target.open("w", encoding="utf-8") as output:
            output.write(header)
            output.writelines(heapq.merge(*map(_lines, files), key=lambda line: int(line.partition(",")[0])))
    finally:
        for file in files:
            file.close()


def _lines(file: IO[str]) -> Iterator[str]:
    while line := file.readline(MAX_LINE):
        if len(line) == MAX_LINE:
            raise ValueError(f"a line of {file.name} has more than {MAX_LINE} characters")
        yield line


def _read(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(read_plain(path, path.parent, MAX_BYTES))
    return data
