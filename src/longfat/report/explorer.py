# SPDX-License-Identifier: Apache-2.0
"""The runs of a study as data inside its report: their settings, how to run them again, and their samples.

Owns the shape of that data, which ``explorer.js`` reads.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from longfat.dataset.load import Dataset, Row
from longfat.figures import style
from longfat.plan.model import Plan
from longfat.record.bundle import run_folder_name
from longfat.report.achieved import settings_text, traffic_text
from longfat.report.numbers import shown
from longfat.report.samples import series_of
from longfat.report.settings import drawn_lines, host_lines, network_lines

DIGITS = 12  # digits of a run's id


def explorer_data(plan: Plan, dataset: Dataset, drawn_in: Mapping[str, Sequence[str]]) -> str:
    """Return the runs and their samples as JSON, deflated, in base64."""
    ids = list(dict.fromkeys(run.run_id for run in plan.runs))
    series, every = series_of(dataset, ids)
    texts: dict[str, int] = {}
    data = {
        "study": plan.study,
        "profile": plan.profile,
        "stack": plan.stack,
        "every": every,
        "colours": _colours(dataset),
        "figures": {artifact: list(experiments) for artifact, experiments in drawn_in.items()},
        "specs": _specs(plan, dataset, texts),
        "runs": _entries(plan, dataset, ids),
        "texts": list(texts),
        "series": series,
    }
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")


def _specs(plan: Plan, dataset: Dataset, texts: dict[str, int]) -> list[dict[str, Any]]:
    """Return settings and read-back of each distinct run, as numbers of lines of ``texts``."""
    found = {}
    for run in plan.runs:
        if run.run_id in found:
            continue
        declared = [*network_lines(run.spec), *drawn_lines([run.spec]), *host_lines(run.spec)]
        achieved = [
            f"{row['interface']}: {settings_text([row])}; {traffic_text([row])}"
            for row in dataset.achieved.get(run.run_id, ())
        ]
        flows = dataset.flows.get(run.run_id, ())
        found[run.run_id] = {
            "id": run.run_id[:DIGITS],
            "set": [texts.setdefault(line, len(texts)) for line in declared],
            "got": [texts.setdefault(line, len(texts)) for line in achieved],
            "flows": [[row["flow"], row["cca"], _flow(row)] for row in flows],
        }
    return list(found.values())


def _entries(plan: Plan, dataset: Dataset, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return the entries of the lock, with the number of the run of each: two entries may share a run."""
    outcome = {(run.scenario, run.repetition): run for run in dataset.runs}
    place = {run_id: number for number, run_id in enumerate(ids)}
    return [
        {
            "run": place[run.run_id],
            "experiment": run.experiment,
            "factors": run.factors,
            "repetition": run.repetition,
            "status": known.status if (known := outcome.get((run.scenario, run.repetition))) else "missing",
            "reason": (known.reason if known else None) or "",
            "folder": run_folder_name(run.scenario, run.repetition, run.run_id),
        }
        for run in sorted(plan.runs, key=lambda one: (one.experiment, one.scenario, one.repetition))
    ]


def _colours(dataset: Dataset) -> dict[str, str]:
    """Return the colour of each congestion control in the figures."""
    names = sorted({row["cca"] for rows in dataset.flows.values() for row in rows}, key=style.order)
    return {name: style.look(name, place)[0] for place, name in enumerate(names)}


def _flow(row: Row) -> str:
    rtt = row.get("min_rtt_us")
    return (
        f"{shown(row['goodput_bps'] / 1e6, 'Mb/s')}, {row.get('retrans_segments') or 0} retransmitted"
        + (f", smallest RTT {shown(rtt / 1e3, 'ms')}" if rtt else "")
    )  # fmt: skip
