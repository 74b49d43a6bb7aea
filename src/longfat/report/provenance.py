# SPDX-License-Identifier: Apache-2.0
"""The provenance of the results of a report: runs, kernel, commit, machine and limits in a few lines, and all digests.

All times in it come from the records, so equal results give equal lines.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from longfat.dataset.build import dataset_digests
from longfat.dataset.load import Dataset
from longfat.evidence.criteria import YOUNGER
from longfat.evidence.judged import Evidenced
from longfat.execute.record.made_on import MadeOn
from longfat.figures.drawing import FOLDER
from longfat.plan.lockfile import LOCK
from longfat.plan.model import Plan
from longfat.relations.judge import Origin, Verdict


def provenance(
    plan: Plan, dataset: Dataset, origin: Origin, evidence: Evidenced | None, made: MadeOn | None
) -> Iterator[tuple[str, str]]:
    """Yield name and text of each line about the origin of the results."""
    found = Counter(run.status for run in dataset.runs)
    bad = [f"{number} {status}" for status, number in sorted(found.items()) if status != "ok"]
    checked = "each passed the gates: every declared setting was read back from the kernel"
    yield "Runs", f"{found['ok']} of {len(dataset.runs)} valid{'; ' + ', '.join(bad) if bad else ''}; {checked}"
    for source in plan.kernels.values():
        patches = f", with {len(source.patches)} patches, which lock.json names" if source.patches else ""
        yield "Kernel", f"{source}{patches}"
    yield "Backend", f"{plan.pins.get('backend', 'none')}, stack {plan.stack}, profile {plan.profile}, seed {plan.seed}"
    yield (
        "Commit",
        made.commit if made else f"not recorded; the digest of the guest is {plan.pins.get('code', 'none')[:12]}",
    )
    machine = [made.machine] if made else []
    if plan.pins.get("backend") == "virtual":
        machine.append("without effect: time is virtual, and equal inputs give equal bytes on any machine")
    yield "Machine", "; ".join(machine) or "not recorded"
    yield "Limits", f"{origin.sentence} (digest {origin.first_sha256[:16]})"
    yield "Date", f"claims recorded {origin.first_time}"
    if evidence:
        yield (
            "Committed",
            f"{evidence.runs} runs of baseline {evidence.baseline} under experiments/{plan.study}/evidence; "
            f"./just again {plan.study} --sample 1% runs a sample of them again, which must be byte-identical",
        )
        changed = f" {YOUNGER}: {'; '.join(evidence.younger)}." if evidence.younger else ""
        yield "Evidence", f"{' '.join(evidence.remarks)}{changed}"


def exclusions_of(dataset: Dataset, plan: Plan) -> list[tuple[str, str, int]]:
    """Return status, reason and number of runs: first points that the backend leaves out, then invalid runs."""
    planned = Counter(("beyond the backend", point.reason) for point in plan.excluded)
    found = Counter((run.status, run.reason or "no reason recorded") for run in dataset.runs if run.status != "ok")
    return [(status, reason, count) for (status, reason), count in (*planned.items(), *found.items())]


def digests_of(results: Path, plan: Plan, verdicts: Sequence[Verdict]) -> list[tuple[str, str]]:
    """Return the digests of the inputs and of the results."""
    rows = [(key, plan.pins.get(key, "none")) for key in ("backend", "kernel", "image", "code")]
    rows.append(("lock", hashlib.sha256((results / LOCK).read_bytes()).hexdigest()))
    rows += [(f"source of kernel {digest[:12]}", str(source)) for digest, source in plan.kernels.items()]
    rows += [("manifest", plan.manifest_sha256), ("claims", plan.claims_sha256)]
    rows += [(f"dataset, {table}", digest) for table, digest in dataset_digests(results).items()]
    words = json.dumps([dataclasses.asdict(verdict) for verdict in verdicts], sort_keys=True)
    rows.append(("verdicts", hashlib.sha256(words.encode()).hexdigest()))
    figures = hashlib.sha256()
    for path in sorted((results / FOLDER).glob("*.csv")):
        figures.update(path.name.encode() + path.read_bytes())
    rows.append(("data of the figures", figures.hexdigest()))
    return rows
