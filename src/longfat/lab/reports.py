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


def write_json(path: Path, data: object) -> None:
    """Write ``data`` as sorted, indented JSON."""
    path.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")
