# SPDX-License-Identifier: Apache-2.0
"""A report card as data: numbers and verdicts of one algorithm, in a small file that can be read without its runs.

Owns the form of the file, the numbers in it, and the copy of the study with the candidate. Texts and order of the rows
belong to ``longfat.report.card.document``.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import TypeAdapter, ValidationError

from longfat.data.study_folder import CLAIMS, MANIFEST, StudyFolder
from longfat.metrics.data import NoValue
from longfat.metrics.quantities import significant
from longfat.metrics.registry import OWN_METRICS
from longfat.plan.model import Plan
from longfat.relations.bind import Scope
from longfat.relations.evaluate import Grounds, evaluated
from longfat.relations.judge import Verdict
from longfat.relations.syntax import parse_expression
from longfat.relations.tree import selections
from longfat.report.card.document import FILE, CardDocument, Row
from longfat.report.numbers import compared
from longfat.spec.units import Duration, Rate
from longfat.study.catalog.ccas import CCAS
from longfat.study.traffic.own import PROGRAM, faults_of
from longfat.system.errors import RigError, StudyError
from longfat.system.files import write_whole
from longfat.system.trust import agree

RUN_DIGITS = 8  # digits of a run's id in a cell
Word = Literal["no worse", "worse", "open", "not measured", "reproduced", "not reproduced", "undecided", "not testable"]
COMPARED: Mapping[str, Word] = {
    "reproduced": "no worse",
    "not reproduced": "worse",
    "undecided": "open",
    "not testable": "not measured",
}
"""The words for verdicts on a card with peers; a card without peers uses the verdicts themselves."""
ALONE: Mapping[str, Word] = {
    "reproduced": "reproduced",
    "not reproduced": "not reproduced",
    "undecided": "undecided",
    "not testable": "not testable",
}


@dataclass(frozen=True)
class Cell:
    """A value with its 95 % interval and the first digits of its runs' ids, or the reason for its absence."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    runs: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class Judgement:
    """The verdict of a row, with the comparisons behind it as text, and the known cause of a failure."""

    word: Word
    evidence: tuple[str, ...] = ()
    cause: str | None = None


@dataclass(frozen=True)
class Card:
    """The card of one algorithm. ``cells`` are by row and column; ``kernel`` and ``lock`` are digests."""

    algorithm: str
    study: str
    profile: str
    kernel: str
    lock: str
    valid: int
    planned: int
    cells: Mapping[str, Mapping[str, Cell]]
    verdicts: Mapping[str, Judgement] = field(default_factory=dict)
    format: Literal[1] = 1

    def cell(self, row: str, column: str) -> Cell:
        """Return the cell of a row and a column; a cell with a reason if the card lacks it."""
        return self.cells.get(row, {}).get(column, Cell(reason="the card is older than this row"))

    def word(self, row: Row) -> Word | None:
        """Return the verdict of a row; None for a row without a claim."""
        judgement = self.verdicts.get(row.row)
        return judgement.word if judgement else "not measured" if row.claim else None

    def count(self, word: Word) -> int:
        """Return the number of rows with this verdict."""
        return sum(judgement.word == word for judgement in self.verdicts.values())

    @property
    def summary(self) -> str:
        """The numbers of verdicts in one line."""
        found = {word: self.count(word) for word in (*COMPARED.values(), *ALONE.values())}
        return ", ".join(f"{count} {word}" for word, count in found.items() if count) or "no verdict"


_FILE = TypeAdapter(Card)


def write_card(card: Card, path: Path) -> Path:
    """Write a card atomically as JSON."""
    data = _FILE.dump_python(card, mode="json", exclude_none=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(data, indent=1, sort_keys=True) + "\n")
    return path


def read_cards(folder: Path) -> dict[str, Card]:
    """Read the cards of a folder, by algorithm. Raises RigError with file and key of the first fault."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        try:
            card = _FILE.validate_json(path.read_bytes())
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise RigError(f"the card cannot be read: {place}: {first['msg'].lower()}", where=str(path)) from error
        except OSError as error:
            raise RigError(f"the card cannot be read: {error}", where=str(path)) from error
        if card.algorithm != path.stem:
            raise RigError(f"the card is of {card.algorithm!r}, not of its file's name", where=str(path))
        found[card.algorithm] = card
    return found


def measure_card(
    algorithm: str, document: CardDocument, grounds: Grounds, verdicts: Sequence[Verdict], plan: Plan, lock: str
) -> Card:
    """Compute the card of an algorithm from the runs of a plan and the verdicts on the study's claims."""
    by_claim = {verdict.claim: verdict for verdict in verdicts}
    runs = grounds.dataset.runs
    return Card(
        algorithm=algorithm,
        study=document.study,
        profile=plan.profile,
        kernel=plan.pins.get("kernel", ""),
        lock=lock,
        valid=sum(run.status == "ok" for run in runs),
        planned=len(runs),
        cells={row.row: {column: _cell(row, column, grounds) for column in document.columns} for row in document.rows},
        verdicts={row.row: _judgement(by_claim[row.claim], document) for row in document.rows if row.claim is not None},
    )


def _cell(row: Row, column: str, grounds: Grounds) -> Cell:
    expression = parse_expression(row.expression(column))
    chosen = selections(expression, Scope(grounds.study))
    runs = {run.run_id[:RUN_DIGITS] for selection in chosen for run in selection.chosen(grounds.dataset)}
    try:
        found = evaluated(expression, grounds, least=1)
        low, high = found.interval() if found.n > 1 else (None, None)
    except (NoValue, ValueError) as error:
        return Cell(reason=str(error), runs=tuple(sorted(runs)))
    return Cell(significant(found.value), _end(low), _end(high), found.n, tuple(sorted(runs)))


def _end(value: float | None) -> float | None:
    """Return an end of an interval; None for an interval that is missing or infinite."""
    return significant(value) if value is not None and math.isfinite(value) else None


def _judgement(verdict: Verdict, document: CardDocument) -> Judgement:
    words = COMPARED if document.peers else ALONE
    lines = [f"{one.what}: {one.reason if one.mean is None else compared(one)}" for one in verdict.evidence]
    reason = [verdict.reason] if verdict.reason else []
    found = "reproduced" if verdict.verdict == "compatible" else verdict.verdict
    if document.peers and found == "undecided" and verdict.why != "too few runs":
        found = "not testable"
    return Judgement(words[found], tuple(lines or reason), verdict.deviation)


UNKNOWN = "algorithm"
_UNKNOWNS = re.compile(r"(?ms)^unknowns:\n.*?(?=^\S)")
_CANDIDATE = re.compile(r'\{cca: "\$\{algorithm\}"\}')
QLOG = "send.qlog"


def require_algorithm(given: str) -> None:
    """Raise StudyError for an unknown algorithm or a faulty file."""
    if problems := tuple(faults_of(given)):
        raise StudyError("the algorithm cannot be evaluated", problems=problems)


def candidate(folder: StudyFolder, given: str, home: Path) -> tuple[str, StudyFolder]:
    """Return the name of an algorithm, given as a name or C file, and the study with this candidate.

    Raises StudyError for a study that the candidate makes faulty.
    """
    path = Path(given)
    if path.is_dir():
        name = path.resolve().name
        return name, _copy(folder, [path / file for file in PROGRAM], _use_program, home / name / folder.name)
    if given not in CCAS:
        name = path.stem.removeprefix("tcp_")
        agree(path.read_bytes())  # a file that the user names
        return name, _copy(folder, [path], partial(_use_source, path.name), home / name / folder.name)
    return given, folder.assuming({UNKNOWN: given})


def _copy(folder: StudyFolder, files: Sequence[Path], change: Callable[[Path], None], to: Path) -> StudyFolder:
    """Copy the study to a folder of the same name, add files and change it. Raises StudyError."""
    to.mkdir(parents=True, exist_ok=True)
    for path in (*(path for path in folder.path.iterdir() if path.is_file()), *files):
        shutil.copyfile(path, to / path.name)
    agree((to / OWN_METRICS).read_bytes())  # the project's own
    change(to)
    study = StudyFolder(to)
    study.check()
    return study


def _use_source(name: str, to: Path) -> None:
    text = _UNKNOWNS.sub("", (to / MANIFEST).read_text(encoding="utf-8"))
    write_whole(to / MANIFEST, _CANDIDATE.sub(f"{{source: {name}}}", text))


def _use_program(to: Path) -> None:
    """Replace the only flow of each experiment by the programs, and samples of sockets by samples of queues.

    Experiments that drop packets of TCP go, with their claims. So do deviations, whose causes are in the kernel.
    """
    files = (MANIFEST, CLAIMS, FILE)
    manifest, claims, card = (yaml.safe_load((to / name).read_text(encoding="utf-8")) for name in files)
    for key in ("unknowns", "algorithms"):
        manifest.pop(key, None)
    usual, gone = manifest["defaults"].pop("flow", {}), set()
    for part in (manifest["defaults"], *manifest["experiments"]):
        probes = part.get("probes", {})
        if "sockets" in probes:
            probes["queues"] = probes.pop("sockets")
    for experiment in manifest["experiments"]:
        if flows := experiment.pop("flows", []):
            if len(flows) > 1:
                hint = "programs are evaluated against bbr-draft"
                raise StudyError("programs cannot replace several flows", where=experiment["id"], hint=hint)
            experiment["programs"] = [_program({**usual, **flows[0]})]
        gone |= {experiment["id"]} if "drops" in experiment else set()

    def needs_gone(part: Mapping[str, Any]) -> bool:
        return any(re.search(rf"\[{name}[,\]]", str(part)) for name in gone)

    manifest["experiments"] = [one for one in manifest["experiments"] if one["id"] not in gone]
    claims["claims"] = [
        {key: one[key] for key in one if key != "deviation"} for one in claims["claims"] if not needs_gone(one)
    ]
    for row in filter(needs_gone, card["rows"]):
        reason = "the run drops chosen packets, which is possible for TCP only"
        card["left_out"].append({"section": row["section"], "what": row["shows"], "reason": reason})
    card["rows"] = [row for row in card["rows"] if not needs_gone(row)]
    for name, data in zip(files, (manifest, claims, card), strict=True):
        write_whole(to / name, yaml.safe_dump(data, sort_keys=False))


def _program(flow: Mapping[str, Any]) -> dict[str, Any]:
    limits = [str(Rate.parse(flow["rate"]).value)] if "rate" in flow else []
    limits += [f"{Duration.parse(flow[key]).value / 1e6:g}" for key in ("on_time", "off_time") if key in flow]
    return {
        **{key: flow[key] for key in ("name", "from", "to", "duration")},
        "send": " ".join(["./send {address} {port} {seconds}", *limits]),
        "receive": "./receive {port}",
        "files": list(PROGRAM),
        "keep": [QLOG],
    }
