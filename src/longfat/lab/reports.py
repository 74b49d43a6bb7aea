# SPDX-License-Identifier: Apache-2.0
"""Files that are written when a run is over, on whichever machine its parts come together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from longfat.lab import traffic
from longfat.runspec import RunSpec


def flow_results(spec: RunSpec, folder: Path) -> list[dict[str, Any]]:
    """flows.json from what iperf2 said at both ends of each flow. Raises ValueError when it said too little."""
    results = []
    for flow in spec.flows:
        said = {end: (folder / "iperf" / f"{flow.name}.{end}.txt").read_text() for end in ("client", "server")}
        sent, _ = traffic.parse_report(said["client"], flow.streams)
        received, goodput = traffic.parse_report(said["server"], flow.streams)
        results.append(
            {
                "flow": flow.name,
                "sender": flow.sender,
                "receiver": flow.receiver,
                "cca": flow.cca,
                "start_us": flow.start_us,
                "end_us": flow.start_us + flow.duration_us,
                "bytes_sent": sent,
                "bytes_received": received,
                "goodput_bps": goodput,
            }
        )
    return results


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


def write_json(path: Path, data: object) -> None:
    """Write ``data`` as sorted, indented JSON."""
    path.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")
