# SPDX-License-Identifier: Apache-2.0
"""Assembles the report of a study: one HTML page that needs nothing else.

Owns what the page tells and in which order; its looks are in ``report.html.j2``. Computes no metric and gives
no verdict: it shows what dataset, verdicts and figures hold, and beside them what the committed evidence says. No
wall-clock time gets in, so equal results and evidence give an equal page.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longfat.dataset.build import dataset_digests
from longfat.dataset.columns import STATUSES
from longfat.dataset.load import Dataset, Run, load_dataset
from longfat.evidence.collect import ground_of_results
from longfat.evidence.costs import Lack, lack_of
from longfat.evidence.judged import Evidenced
from longfat.figures.document import FiguresDocument, beyond_the_paper
from longfat.figures.drawing import FOLDER, check_figures
from longfat.manifest.models import Header
from longfat.network import ports
from longfat.plan.lockfile import read_lock
from longfat.plan.model import Plan, PlannedRun
from longfat.relations.claims import claim_nouns
from longfat.relations.counting import VERDICT_WORDS, VerdictWord, apart, tally
from longfat.relations.evaluate import Evidence
from longfat.relations.judge import Verdict, read_origin, read_verdicts
from longfat.report.achieved import achieved, made_with
from longfat.report.beside import Beside, beside
from longfat.report.page import render, write_page
from longfat.report.reference import other_stack, provenance
from longfat.seals import seal, seal_of
from longfat.studies import CLAIMS, FIGURES, StudyFolder
from longfat.traffic import section_of

REPORT = "report.html"
SHOWN_EXCLUSIONS = 200  # a longer list is better read in exclusions.csv
BEYOND_HEADING = "Beyond the paper: how far the results depend on what it does not state"
OUTCOMES = {"holds": "within", "fails": "outside", "undecided": "undecided", "no_data": "no data"}


@dataclass(frozen=True)
class ShownFigure:
    """A figure beside what is stated of it; ``image`` is a data address, None when it was not drawn.

    ``source`` says who states it, and is "" where nobody does; ``claims`` has the word on each, ``made_with`` which
    runs and kernels it is of.
    """

    artifact: str
    title: str
    image: str | None
    source: str
    stated: str
    numbers: tuple[str, ...]
    claims: Mapping[str, VerdictWord]
    made_with: str


@dataclass(frozen=True)
class Setting:
    """What one experiment set, in words."""

    experiment: str
    artifacts: str
    runs: int
    factors: str
    network: tuple[str, ...]
    flows: tuple[str, ...]
    hosts: tuple[str, ...]


def write_report(results: Path, folder: StudyFolder, evidence: Evidenced | None = None) -> Path:
    """Write ``report.html`` from what the earlier steps left under ``results``; give its path.

    With ``evidence``, all that is committed of the study's, each claim has its verdict by that first.
    Raises RigError when dataset or verdicts are missing or the page cannot be written, RecordError when something was
    changed since it was made, StudyError on faulty study files.
    """
    plan = read_lock(results / "lock.json")
    dataset = load_dataset(results)
    verdicts = read_verdicts(results, folder.path)
    check_figures(results, folder.path)
    study, figures = folder.study, folder.figures
    drawn_in = {one.artifact: one.experiments(study) for one in figures.figures}
    noun, nouns = claim_nouns(study.header)
    judged = {item.verdict.claim: item for item in evidence.judged} if evidence else {}
    word_of = {one.claim: judged[one.claim].verdict.verdict if one.claim in judged else one.verdict for one in verdicts}
    page = render(
        "report.html.j2",
        plan=plan,
        study=study,
        noun=noun,
        nouns=nouns,
        source=_source(study.header, verdicts),
        runs=_counts([run.status for run in dataset.runs], STATUSES),
        counts=tally(verdict.counted for verdict in verdicts),
        apart=apart,
        evidence=evidence,
        judged=judged,
        lacks=_lacks(folder, plan, dataset, verdicts),
        word_of=word_of,
        words={word: sum(one == word for one in word_of.values()) for word in VERDICT_WORDS},
        origin=read_origin(results),
        verdicts=verdicts,
        outcomes=OUTCOMES,
        sections=_sections(_figures(results, figures, verdicts, word_of, plan, drawn_in), study.header),
        other=_beside(results, folder, plan, verdicts),
        coverage=coverage(figures, verdicts, study.header),
        settings=settings(plan, drawn_in),
        achieved=achieved(dataset),
        exclusions=_exclusions(dataset, plan),
        not_ok=[run for run in dataset.runs if run.status != "ok"][:SHOWN_EXCLUSIONS],
        digests=_digests(results, plan, verdicts),
        measured=measured,
        files=[f"experiments/{folder.name}/{name}" for name in (CLAIMS, FIGURES) if folder.has(name)],
    )
    path = write_page(results / REPORT, page)
    before = (seal_of(results, step) for step in ("dataset", "verdicts", "figures"))
    seal(results, "report", [path, *(one for one in before if one.exists())])
    return path


def measured(evidence: Evidence) -> str:
    """Mean with spread and n of one comparison, for people."""
    if evidence.mean is None:
        return evidence.reason or "no data"
    value = f"{_short(evidence.mean)} {evidence.unit}".strip()
    if evidence.n is None:
        return f"{value} (computed)"
    counted = f"n = {evidence.n}"
    if evidence.repeats:
        counted += f"; {evidence.repeats} more the same to the byte, which count once"
    if evidence.n == 1 and evidence.low == evidence.high:
        return f"{value} ({counted})"
    spread = f"; sd {_short(evidence.sd)}" if evidence.sd is not None else ""
    return f"{value} (95 %: {_short(evidence.low)} to {_short(evidence.high)}{spread}; {counted})"


def coverage(figures: FiguresDocument, verdicts: list[Verdict], header: Header) -> tuple[str, ...]:
    """How many of the paper's artifacts and claims are here; what goes beyond the paper does not count.

    Nothing where the study has no paper to cover.
    """
    if header.paper is None:
        return ()
    drawn = len({one.part_of or one.artifact for one in figures.figures if not beyond_the_paper(one.artifact)})
    claimed = sum(not beyond_the_paper(verdict.artifact) for verdict in verdicts)
    if figures.paper is None:
        return (f"{drawn} figures and tables", f"{claimed} claims")
    return (
        f"{drawn} of the paper's {figures.paper.artifacts} figures and tables",
        f"{claimed} of its {figures.paper.claims} claims",
    )


def settings(plan: Plan, drawn_in: Mapping[str, Sequence[str]]) -> list[Setting]:
    """What each experiment of the lock set, by its first run; ``drawn_in`` has the experiments of each figure."""
    groups: dict[str, list[PlannedRun]] = {}
    for run in plan.runs:
        groups.setdefault(run.experiment, []).append(run)
    return [_setting(name, runs, drawn_in) for name, runs in sorted(groups.items())]


def _setting(name: str, runs: list[PlannedRun], drawn_in: Mapping[str, Sequence[str]]) -> Setting:
    spec = runs[0].spec
    factors = {key: sorted({run.factors[key] for run in runs}, key=_order) for key in runs[0].factors}
    hosts = []
    for node in spec.nodes:
        shown = [f"{key} = {value}" for key, value in sorted(node.sysctls.items())]
        initial = node.initial_cwnd_segments
        shown += [f"initial window {initial} segments"] if initial is not None else []
        shown += [f"offloads {', '.join(node.offloads) or 'none'}"]
        hosts.append(f"{node.name} ({node.role}): {'; '.join(shown)}")
    return Setting(
        experiment=name,
        artifacts=", ".join(artifact for artifact, experiments in drawn_in.items() if name in experiments),
        runs=len(runs),
        factors="; ".join(f"{key}: {', '.join(map(str, values))}" for key, values in factors.items()) or "none",
        network=tuple(_port_text(port) for port in ports(spec)),
        flows=tuple(
            f"{one.name}: {one.sender} to {one.receiver}, {one.duration_us / 1e6:g} s, {section_of(one).words(one)}"
            for one in spec.sent
        ),
        hosts=tuple(hosts),
    )


def _port_text(port: Any) -> str:
    egress = port.egress
    parts = [f"{port.name} to {port.peer}: MTU {port.mtu_bytes} B"]
    if egress.rate_bps is not None:
        queue = egress.queue
        size = f"{queue.limit_bytes} B" if queue.limit_bytes else "memory"
        limit = f"{queue.limit_packets} packets" if queue.limit_packets else size
        own = "".join(f", {key} {value}" for key, value in sorted(queue.parameters.items()))
        parts.append(f"{egress.rate_bps / 1e6:g} Mbit/s, {queue.kind} of {limit}{own}")
    if egress.delay_us:
        parts.append(f"delay {egress.delay_us / 1000:g} ms")
    if egress.impairment:
        parts.append(egress.impairment.words)
    if egress.policer:
        parts.append(f"policed to {egress.policer.rate_bps / 1e6:g} Mbit/s, {egress.policer.burst_bytes} B")
    if egress.trace:
        parts.append(f"rate of the trace {egress.trace.sha256[:12]}")
    if egress.changes:
        parts.append("changes at " + ", ".join(f"{change.at_us / 1e6:g} s" for change in egress.changes))
    if egress.drops:
        parts.append("one packet dropped at " + ", ".join(f"{drop.at_us / 1e6:g} s" for drop in egress.drops))
    return ", ".join(parts)


def _figures(
    results: Path,
    figures: FiguresDocument,
    verdicts: list[Verdict],
    word_of: Mapping[str, VerdictWord],
    plan: Plan,
    drawn_in: Mapping[str, Sequence[str]],
) -> list[ShownFigure]:
    return [
        ShownFigure(
            artifact=figure.artifact,
            title=figure.title,
            image=_data_address(results / FOLDER / f"{figure.artifact}.svg"),
            source="The paper states" if figure.paper else "The study expects" if figure.hypothesis else "",
            stated=figure.paper or figure.hypothesis or "",
            numbers=tuple(mark.label for mark in figure.marks),
            claims={one.claim: word_of[one.claim] for one in verdicts if figure.artifact in (one.artifact, *one.also)},
            made_with=made_with(plan, drawn_in[figure.artifact]),
        )
        for figure in figures.figures
    ]


def _lacks(folder: StudyFolder, plan: Plan, dataset: Dataset, verdicts: list[Verdict]) -> dict[str, Lack]:
    """What the results lack of the profile's runs, by claim that is not measured."""
    open_ = {verdict.claim for verdict in verdicts if verdict.verdict == "not_measured"}
    ground = ground_of_results(folder, plan, dataset) if open_ else None
    if ground is None:
        return {}
    claims = [claim for claim in folder.claims if claim.id in open_]
    return {claim.id: lack for claim in claims if (lack := lack_of(claim, ground))}


def _source(header: Header, verdicts: list[Verdict]) -> str:
    """The heading over what others state of the claims; "" where none states anything."""
    return "Paper" if header.paper else "Source" if any(verdict.paper for verdict in verdicts) else ""


def _sections(shown: list[ShownFigure], header: Header) -> list[tuple[str, str, list[ShownFigure]]]:
    """Anchor, heading and figures: those of the paper, then what it does not ask; without a paper all together."""
    if header.paper is None:
        return [("figures", "Figures and tables", shown)]
    beyond = [figure for figure in shown if beyond_the_paper(figure.artifact)]
    sections = [("figures", "Figures and tables", [figure for figure in shown if figure not in beyond])]
    return sections + ([("beyond", BEYOND_HEADING, beyond)] if beyond else [])


def _beside(results: Path, folder: StudyFolder, plan: Plan, verdicts: list[Verdict]) -> Beside | None:
    """The verdicts beside those of another stack, where the study has a reference of one."""
    other = other_stack(results, folder, plan)
    return beside(plan, {verdict.claim: verdict.verdict for verdict in verdicts}, other) if other else None


def _data_address(path: Path) -> str | None:
    if not path.exists():
        return None
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


def _exclusions(dataset: Dataset, plan: Plan) -> list[tuple[str, str, int]]:
    """Reason and number of runs: first those that the manifest leaves out, then those that are not ok."""
    planned = Counter(("left out by the study", point.reason) for point in plan.excluded)
    found = Counter((run.status, _reason(run)) for run in dataset.runs if run.status != "ok")
    return [(status, reason, count) for (status, reason), count in (*planned.items(), *found.items())]


def _reason(run: Run) -> str:
    return run.reason or "no reason recorded"


def _digests(results: Path, plan: Plan, verdicts: list[Verdict]) -> list[tuple[str, str]]:
    rows = list(provenance(results).items())
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


def _counts(found: list[str], order: tuple[str, ...]) -> dict[str, int]:
    return {name: found.count(name) for name in order}


def _order(value: Any) -> tuple[str, Any]:
    return str(type(value)), value


def _short(value: float | None) -> str:
    """Four significant digits, thousands apart; no exponent for the sizes that occur here."""
    if value is None:
        return "-"
    if value == 0 or 1e-4 <= abs(value) < 1e12:
        digits = max(0, 3 - len(str(int(abs(value)))) + 1) if abs(value) >= 1 else 4
        return f"{value:,.{digits}f}"
    return f"{value:.4g}"
