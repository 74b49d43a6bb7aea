# SPDX-License-Identifier: Apache-2.0
"""Files that are written when a run is over, on whichever machine its parts come together."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from longfat.guest import traffic
from longfat.runspec import Flow, RunSpec


def flow_results(spec: RunSpec, folder: Path) -> list[dict[str, Any]]:
    """flows.json from what iperf2 said at both ends of each flow. Raises ValueError when it said too little."""
    results = []
    ports = traffic.ports(spec)
    for flow in spec.flows:
        said = {end: (folder / "iperf" / f"{flow.name}.{end}.txt").read_text() for end in ("client", "server")}
        if flow.transfer_bytes:
            under_way = json.loads((folder / "iperf" / f"{flow.name}.end.json").read_text())
            amounts = _transferred(flow, said, ports[flow.name], under_way)
        else:
            amounts = _sent(flow, said)
        results.append(
            {
                "flow": flow.name,
                "sender": flow.sender,
                "receiver": flow.receiver,
                "cca": flow.cca,
                "start_us": flow.start_us,
                "end_us": flow.start_us + flow.duration_us,
                **amounts,
            }
        )
    return results


def _sent(flow: Flow, said: dict[str, str]) -> dict[str, int]:
    sent, _ = traffic.parse_report(said["client"], flow.streams)
    received, goodput = traffic.parse_report(said["server"], flow.streams)
    return {"bytes_sent": sent, "bytes_received": received, "goodput_bps": goodput}


def _transferred(flow: Flow, said: dict[str, str], port: int, under_way: dict[str, int]) -> dict[str, int]:
    """Of connections that follow each other: how many were complete, and the rate of all over the flow's duration.

    ``under_way`` has what those that were open at the flow's end had received by then, by the sender's port: what the
    buffers held comes later, and counts for nothing.
    """
    sent, ended = (traffic.parse_transfers(said[end], port) for end in ("client", "server"))
    if not ended:
        raise ValueError(f"iperf2 reported no transfer of flow {flow.name}: {said['server'].strip()[-300:]!r}")
    received = [min(amount, under_way.get(str(sender), amount)) for sender, amount in ended]
    return {
        "bytes_sent": sum(amount for _, amount in sent),
        "bytes_received": sum(received),
        "goodput_bps": round(8e6 * sum(received) / flow.duration_us),
        "transfers": sum(amount == flow.transfer_bytes for amount in received),
    }


def web_results(spec: RunSpec, folder: Path) -> list[dict[str, Any]]:
    """web.json from what the users of each web traffic said. Raises ValueError when they said too little."""
    results = []
    for users in spec.web:
        said = json.loads((folder / "web" / f"{users.name}.users.json").read_text())
        results.append(
            {
                "web": users.name,
                "sender": users.sender,
                "receiver": users.receiver,
                "cca": users.cca,
                "model": users.model,
                "users": users.users,
                "start_us": users.start_us,
                "end_us": users.start_us + users.duration_us,
                **{key: said[key] for key in ("bytes_received", "replies", "unfinished", "mean_reply_us", "errors")},
            }
        )
    return results


def write_reports(spec: RunSpec, folder: Path) -> None:
    """Write what the programs of all machines reported: flows.json, and web.json where the run has web traffic."""
    write_json(folder / "flows.json", flow_results(spec, folder))
    if spec.web:
        write_json(folder / "web.json", web_results(spec, folder))


def write_json(path: Path, data: object) -> None:
    """Write ``data`` as sorted, indented JSON."""
    path.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")


def write_points(path: Path, column: str, points: Iterable[tuple[int, int]]) -> None:
    """Write a table of ``t_us`` and one more column."""
    with path.open("w") as table:
        table.write(f"t_us,{column}\n")
        table.writelines(f"{t_us},{value}\n" for t_us, value in points)
