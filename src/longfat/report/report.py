# SPDX-License-Identifier: Apache-2.0
"""The report of a study: one self-contained HTML page.

Owns the contents of the page and their order; its looks are in ``report.html.j2`` and the templates that it includes.
It computes no metric and gives no verdict. No wall-clock time is in it, so equal results and evidence give equal bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote, urlencode

from longfat.data.study_folder import CLAIMS, FIGURES, StudyFolder
from longfat.dataset.columns import STATUSES
from longfat.dataset.load import Dataset, Run, load_dataset
from longfat.evidence.judged import Evidenced, Judged
from longfat.evidence.sensitivity import Condition
from longfat.execute.record.made_on import read_made_on
from longfat.figures.bars import Bars
from longfat.figures.document import FiguresDocument, beyond_the_paper
from longfat.figures.drawing import check_figures
from longfat.plan.lockfile import read_lock
from longfat.plan.model import Plan
from longfat.relations.claims import Change, claim_nouns
from longfat.relations.counting import CATEGORIES, Counts, once, tally
from longfat.relations.headlines import RULE, JudgedHeadline, claim_words, judged_headlines
from longfat.relations.judge import Origin, Verdict, read_origin, read_verdicts
from longfat.relations.outcomes import WORDS, Word
from longfat.report.explorer import Labels, Mark, explorer_data
from longfat.report.figures import FigureView, figure_views, sections_of
from longfat.report.findings import (
    Causes,
    Comparison,
    answer,
    causes_of,
    compare_stacks,
    headline_counts,
    headline_rows,
)
from longfat.report.forest import Part, by_section, forest
from longfat.report.page import render, write_page
from longfat.report.provenance import digests_of, exclusions_of, provenance
from longfat.report.readme import Cause, Readme, quoted
from longfat.report.settings import achieved, settings_of
from longfat.study.models import Header
from longfat.system.checksums import checksums_of, write_checksums

REPORT = "report.html"
MOST_EXCLUSIONS = 200  # exclusions.csv has the whole list
FOLDED = ("law", "construction", "arithmetic")  # kinds of claims that do not depend on the paper's measurements


def write_report(
    results: Path,
    folder: StudyFolder,
    evidence: Evidenced | None = None,
    conditions: Sequence[Condition] = (),
    other: Evidenced | None = None,
) -> Path:
    """Write ``report.html`` from the results of the earlier steps; return its path.

    ``evidence`` is the committed evidence of the study: with it, a claim has the verdict by all of it. ``other`` is the
    evidence of the stack to compare with. ``conditions`` are the values of unknowns on which claims depend.
    Raises RigError if dataset or verdicts are missing, RecordError if a file was changed
    since it was made, StudyError for faulty study files.
    """
    verdicts = read_verdicts(results, folder.path)
    check_figures(results, folder.path)
    view = Report(
        results=results,
        folder=folder,
        plan=read_lock(results / "lock.json"),
        dataset=load_dataset(results),
        own={verdict.claim: verdict for verdict in verdicts},
        origin=read_origin(results),
        evidence=evidence,
        comparison=compare_stacks(evidence, other) if evidence and other else None,
        conditions=[one for one in conditions if one.claims],
    )
    made = read_made_on(results)
    page = render(
        "report.html.j2",
        report=view,
        headlines=list(zip(view.headlines, headline_rows(view.headlines), strict=True)),
        rule=RULE,
        sections=sections_of(list(view.figures.values()), view.header),
        settings=settings_of(view.plan, view.drawn_in, view.labels),
        achieved=list(achieved(view.dataset)),
        coverage=coverage(folder.figures, view.verdicts, view.header),
        exclusions=exclusions_of(view.dataset, view.plan),
        provenance=provenance(view.plan, view.dataset, view.origin, evidence, made),
        made=made,
        digests=digests_of(results, view.plan, verdicts),
        files=[f"experiments/{folder.name}/{name}" for name in (CLAIMS, FIGURES) if folder.has(name)],
        samples=explorer_data(view.plan, view.dataset, view.drawn_in, view.marks, view.judging, view.labels),
    )
    path = write_page(results / REPORT, page)
    before = (checksums_of(results, step) for step in ("dataset", "verdicts", "figures"))
    write_checksums(results, "report", [path, *(one for one in before if one.exists())])
    return path


@dataclass(frozen=True)
class ClaimView:
    """A claim as the page shows it: its verdict by all evidence, and the verdict by the report's own runs.

    ``judged`` is None without evidence; ``other`` is the verdict under the stack to compare with, or "". ``counts`` is
    whether the numbers of verdicts include it, and ``runs`` has addresses of its runs by experiment.
    """

    verdict: Verdict
    own: Verdict
    judged: Judged | None
    causes: tuple[Cause, ...]
    other: str
    counts: bool
    runs: Mapping[str, str]

    @property
    def measured(self) -> bool:
        """Whether the deciding comparison has a value."""
        return self.verdict.deciding is not None and self.verdict.deciding.mean is not None

    @property
    def reason(self) -> str:
        """The reason for a verdict, if the measured value does not explain it."""
        if self.measured and self.verdict.why != "scenario differs":
            return ""
        return (self.judged.reason if self.judged else self.verdict.reason) or ""

    @property
    def outcomes(self) -> list[tuple[int, str]]:
        """The number of comparisons with each outcome."""
        found = [one.outcome for one in self.verdict.evidence]
        return [(found.count(word), word) for word in WORDS if word in found]


@dataclass(frozen=True)
class Report:
    """The view model of the page. ``own`` has the verdicts by the report's own runs."""

    results: Path
    folder: StudyFolder
    plan: Plan
    dataset: Dataset
    own: Mapping[str, Verdict]
    origin: Origin
    evidence: Evidenced | None
    comparison: Comparison | None
    conditions: Sequence[Condition]

    @property
    def header(self) -> Header:
        """The head of the manifest."""
        return self.folder.header

    @property
    def nouns(self) -> tuple[str, str]:
        """The words for one claim and for several."""
        return claim_nouns(self.header)

    @property
    def runs(self) -> dict[str, int]:
        """The number of runs by status."""
        found = [run.status for run in self.dataset.runs]
        return {status: found.count(status) for status in STATUSES}

    @cached_property
    def judged(self) -> Mapping[str, Judged]:
        """The verdicts by all evidence."""
        return {item.verdict.claim: item for item in self.evidence.judged} if self.evidence else {}

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """The verdict on each claim: by all evidence, or else by the report's own runs."""
        return [self.judged[one.claim].verdict if one.claim in self.judged else one for one in self.own.values()]

    @property
    def counts(self) -> Counts:
        """The number of claims by category and verdict."""
        return self.evidence.counts if self.evidence else tally(verdict.counted for verdict in self.verdicts)

    @property
    def words(self) -> dict[Word, int]:
        """The total number of claims by verdict."""
        found = [verdict.verdict for verdict in self.verdicts]
        return {word: found.count(word) for word in WORDS}

    @cached_property
    def headlines(self) -> tuple[JudgedHeadline, ...]:
        """The paper's main conclusions, judged from the claims; the numbers are of the evidence."""
        if self.evidence:
            return self.evidence.headlines
        words = claim_words(self.verdicts, self.folder.claims)
        return judged_headlines(self.folder.headlines, words, lambda _: None)

    @property
    def changes(self) -> list[Change]:
        """The criteria that changed after the first run of their claims."""
        return list(dict.fromkeys(change for claim in self.folder.claims for change in claim.changes))

    @cached_property
    def readme(self) -> Readme:
        """The question and the causes in the study's README.md and notes.md."""
        return quoted(self.folder, [verdict.claim for verdict in self.verdicts])

    @cached_property
    def causes(self) -> Causes:
        """The claims that are not reproduced, by cause."""
        return causes_of(self.verdicts, self.readme)

    @property
    def answer(self) -> str:
        """The answer in sentences."""
        return " ".join(answer(self.counts, self.nouns, self.causes))

    @property
    def parts(self) -> Iterator[tuple[str, list[ClaimView]]]:
        """The claims by section of the paper."""
        other = self.comparison.words if self.comparison else {}
        for section, verdicts in by_section(self.verdicts).items():
            yield section, [self._claim(one, other.get(one.claim, "")) for one in verdicts]

    def _claim(self, one: Verdict, other: str) -> ClaimView:
        return ClaimView(
            one,
            self.own[one.claim],
            self.judged.get(one.claim),
            self.readme.of(one.claim),
            other,
            one.claim in self._counted,
            dict(self._runs_of(one.claim)),
        )

    @cached_property
    def _counted(self) -> frozenset[str]:
        """The claims in the numbers of verdicts."""
        return frozenset(
            row.claim for row in once(one.counted for one in self.verdicts) if row.category == CATEGORIES[0]
        )

    @property
    def counted(self) -> int:
        """The number of claims in the numbers of verdicts."""
        return len(self._counted)

    def _runs_of(self, claim: str) -> Iterator[tuple[str, str]]:
        """Yield the experiments of a claim, each with the address of the runs that its last metric reads."""
        known = {run.experiment for run in self.plan.runs}
        relations = next((one.relations for one in self.folder.claims if one.id == claim), ())
        for selection in (found for relation in relations for found in relation.selections(self.folder.study)):
            if selection.experiment in known:
                held = {
                    name: one.values[0] for name, one in selection.where if one.relation == "=" and len(one.values) == 1
                }
                yield selection.experiment, "#" + urlencode({"explore": selection.experiment, **held})

    @property
    def marks(self) -> dict[str, list[Mark]]:
        """The paper's goodputs by experiment, in Mb/s."""
        found: dict[str, dict[float, str]] = {}
        for one in self.folder.figures.figures:
            if isinstance(one, Bars) and one.metric == "goodput" and one.over is None and not one.of_one_flow:
                for experiment in one.experiments(self.folder.study):
                    found.setdefault(experiment, {}).update(
                        {float(mark.value): mark.label for mark in one.marks if mark.axis == "y"}
                    )
        return {experiment: list(marks.items()) for experiment, marks in found.items()}

    @property
    def labels(self) -> dict[str, Labels]:
        """The values of factors as in the manifest, by experiment."""
        return {one.id: one.labels for one in self.folder.study.experiments}

    @property
    def judging(self) -> dict[str, int]:
        """The number of claims that read each experiment."""
        return dict(
            Counter(experiment for verdict in self.verdicts for experiment in dict(self._runs_of(verdict.claim)))
        )

    @property
    def headline_counts(self) -> str:
        """The number of headlines by verdict."""
        return headline_counts(self.headlines)

    @property
    def question(self) -> str:
        """The question in one sentence; "" if the study does not state it."""
        return self.folder.headlines.question if self.folder.headlines else ""

    def forest(self, folded: bool) -> tuple[Part, ...]:
        """Return the lines of the claims that a measurement can decide, or, with ``folded``, of all others."""
        return forest(by_section(self.verdicts), lambda one: (one.category in FOLDED) == folded)

    @property
    def source(self) -> str:
        """The heading of the statements that claims quote; "" without any."""
        quoted = any(verdict.paper for verdict in self.verdicts)
        return "Paper" if self.header.paper else "Source" if quoted else ""

    @cached_property
    def figures(self) -> Mapping[str, FigureView]:
        """All figures, by artifact."""
        found = figure_views(self.results, self.folder, self.verdicts, self.plan, self.evidence)
        return {one.figure.artifact: one for one in found}

    @property
    def topology(self) -> FigureView | None:
        """The drawing of the network of most runs."""
        drawn = [one for one in self.figures.values() if one.figure.kind == "topology" and one.content]
        return max(
            drawn, key=lambda one: sum(run.experiment in one.experiments for run in self.plan.runs), default=None
        )

    @cached_property
    def drawn_in(self) -> Mapping[str, tuple[str, ...]]:
        """The experiments of each figure."""
        return {one.artifact: one.experiments(self.folder.study) for one in self.folder.figures.figures}

    @property
    def not_ok(self) -> list[Run]:
        """The runs that are not valid."""
        return [run for run in self.dataset.runs if run.status != "ok"][:MOST_EXCLUSIONS]

    @property
    def links(self) -> dict[str, str]:
        """Text and address of the files next to the page, from the results folder."""
        own = {"lock": "lock.json", "verdicts": "verdicts.json", "data": "dataset/", "raw records": "raw/"}
        found = {text: address for text, address in own.items() if (self.results / address).exists()}
        if (
            self.folder.has("README.md")
            and self.results.resolve().parent == (self.folder.path.parent.parent / "results").resolve()
        ):
            readme = f"../../experiments/{self.folder.name}/README.md"
            found["README of the study"] = quote(readme, errors="surrogateescape")
        return found


def coverage(figures: FiguresDocument, verdicts: Sequence[Verdict], header: Header) -> tuple[str, ...]:
    """Count the paper's artifacts and claims in a study; nothing for a study without a paper."""
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
