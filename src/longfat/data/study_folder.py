# SPDX-License-Identifier: Apache-2.0
"""A study's folder. All parts of a command share it: each of its files is read and checked once.

Owns the names of the files, and the experiments of each artifact. Must not know results.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel

from longfat.spec.runspec import Scalar
from longfat.study.catalog.kernels import OwnKernel
from longfat.study.load import header_of, study_of
from longfat.study.models import Header
from longfat.study.schema.files import MAX_BYTES
from longfat.study.schema.names import Finding, nearest, unknown
from longfat.study.schema.source import Source, document_of, read_source
from longfat.study.study import Study
from longfat.study.warn import study_warnings
from longfat.system.errors import Problem, StudyError
from longfat.system.files import read_plain
from longfat.system.trust import require_trust

if TYPE_CHECKING:  # they load numpy, which a plan does not need, so they are imported on first use
    from longfat.figures.document import FiguresDocument
    from longfat.relations.claims import Claim
    from longfat.relations.headlines import HeadlinesDocument
    from longfat.relations.paper import PaperNumbers

MANIFEST = "study.yaml"
CLAIMS = "claims.yaml"
FIGURES = "figures.yaml"
HEADLINES = "headlines.yaml"
README = "README.md"
NOTES = "notes.md"
SIMULATED = "ns2.json"  # verdicts and digests of runs in ns-2, which are not evidence


@dataclass(frozen=True)
class StudyFolder:
    """A folder with a study.yaml; claims.yaml, figures.yaml and headlines.yaml may be absent.

    ``given`` values of unknowns replace their defaults in the study of ``base``, from which the claims come. If
    ``only`` names experiments, the study has no others. A file is read when it is first needed; StudyError lists all
    its problems.
    """

    path: Path
    given: Mapping[str, Scalar] = field(default_factory=dict, hash=False)
    only: frozenset[str] = frozenset()
    base: StudyFolder | None = field(default=None, repr=False, compare=False)
    _sources: dict[str, Source] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The name of the folder, and of its results."""
        return self.path.resolve().name

    def assuming(self, given: Mapping[str, Scalar], only: Iterable[str] = ()) -> StudyFolder:
        """Return the study with other values of unknowns, and only the named experiments, if any."""
        return StudyFolder(self.path, given, frozenset(only), self.base or self, self._sources)

    @cached_property
    def header(self) -> Header:
        """The manifest without its experiments, which are not checked."""
        return header_of(self._source(MANIFEST))

    @cached_property
    def study(self) -> Study:
        """The study."""
        return study_of(self._source(MANIFEST), self.given, self.only)

    def problem(self, finding: Finding) -> Problem:
        """Return a finding about the manifest with file and line."""
        return self._source(MANIFEST).problem(finding)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """Problems of manifest and claims that are allowed but probably not intended."""
        from longfat.relations.claim_lint import few_repetitions, rare_samples, without_contradiction

        source = self._source(MANIFEST)
        found = [
            *self._other_name(),
            *few_repetitions(self.claims, self.study),
            *rare_samples(self.claims, self.study),
        ]
        written = (self._source(CLAIMS).problem(one) for one in without_contradiction(self.claims, self.study))
        return (*(source.problem(finding) for finding in found), *written, *study_warnings(source, self.study))

    def _other_name(self) -> Iterator[Finding]:
        """Yield a finding if the manifest's name of the study differs from the folder's."""
        if self.study.name != self.name:
            message = f"{self.study.name!r} is not the name of the folder, {self.name!r}"
            yield Finding(
                ("study",), message, "commands, results and evidence use the folder's name; use one name for both"
            )

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """The claims, in the order of claims.yaml; the study's own metrics are registered with them."""
        from longfat.relations.claim_file import claims_of

        if self.base is not None:
            return self.base.claims
        return claims_of(self._source(CLAIMS), self.study) if self.has(CLAIMS) else ()

    @cached_property
    def headlines(self) -> HeadlinesDocument | None:
        """The paper's question and main conclusions in headlines.yaml; None without the file."""
        from longfat.relations.headlines import headlines_of

        if self.base is not None:
            return self.base.headlines
        return headlines_of(self._source(HEADLINES), self.study, self.claims) if self.has(HEADLINES) else None

    @cached_property
    def papers(self) -> Mapping[str, PaperNumbers]:
        """The paper's own numbers by claim."""
        from longfat.relations.paper import printed_numbers

        return self.base.papers if self.base is not None else printed_numbers(self.claims, self.study)

    @cached_property
    def figures(self) -> FiguresDocument:
        """The figures in figures.yaml; the study's own metrics are registered with them."""
        from longfat.figures.document import FiguresDocument, figures_of

        if not self.has(FIGURES):
            return FiguresDocument(format=2, study=self.study.name)
        return figures_of(self._source(FIGURES), self.study)

    @property
    def judged_by(self) -> Mapping[str, str | None]:
        """The SHA-256 of each file that verdicts depend on, as it was read; None if it was missing."""
        _ = self.claims
        return self._read(MANIFEST, CLAIMS)

    @property
    def drawn_by(self) -> Mapping[str, str | None]:
        """The SHA-256 of each file that figures depend on, as it was read; None if it was missing."""
        _ = self.figures
        return self._read(MANIFEST, FIGURES)

    def has(self, file: str) -> bool:
        """Return whether the file exists."""
        return (self.path / file).exists()

    def digest(self, file: str) -> str:
        """Return the SHA-256 (hex) of a file; "" if it is absent."""
        return hashlib.sha256(self._content(file)).hexdigest() if self.has(file) else ""

    def own_kernels(self, stack: str | None = None) -> dict[str, OwnKernel]:
        """Return the kernels to which the study adds files, by name. Raises StudyError for a file without trust."""
        kernels = self.study.own_kernels(stack)
        for path, content in self._kernel_programs(kernels.values()):
            require_trust(path, content)
        return kernels

    @property
    def programs(self) -> Iterator[bytes]:
        """The content of what runs with the user's rights: metrics, patches, C files, commits of kernel trees."""
        from longfat.metrics.registry import OWN_METRICS

        if self.has(OWN_METRICS):
            yield self._content(OWN_METRICS)
        yield from (content for _, content in self._kernel_programs(self.study.own_kernels().values()))

    def _kernel_programs(self, kernels: Iterable[OwnKernel]) -> Iterator[tuple[Path, bytes]]:
        for kernel in kernels:
            for piece in kernel.pieces:
                yield piece.path, self._content(piece.name)
            if kernel.tree:
                yield self.path / MANIFEST, f"the kernel's source is commit {kernel.tree.commit}".encode()

    def _content(self, file: str) -> bytes:
        """Return the content of a file. Raises StudyError if it is not a plain file of this folder."""
        try:
            return read_plain(self.path / file, self.path, MAX_BYTES)
        except OSError as error:
            reason = error.strerror or str(error)
            raise StudyError(f"the file cannot be read: {reason}", where=str(self.path / file)) from error

    @cached_property
    def simulated(self) -> Mapping[str, Mapping[str, str]]:
        """The verdicts by claim of the committed runs of ns-2, by program and profile. Raises StudyError."""
        text = self.text_of(SIMULATED)
        try:
            data = json.loads(text or "null")
            return {f"{data['key']['kernel']}, {data['profile']}": dict(data["verdicts"])} if data else {}
        except (ValueError, KeyError, TypeError) as error:
            raise StudyError(f"the file cannot be read: {error!r}", where=str(self.path / SIMULATED)) from error

    def text_of(self, file: str) -> str:
        """Return the text of a file for people; "" if it is absent. Raises StudyError if it is not UTF-8."""
        if not self.has(file):
            return ""
        try:
            return self._content(file).decode("utf-8")
        except UnicodeDecodeError as error:
            message = f"the file is not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}"
            raise StudyError(message, where=str(self.path / file)) from error

    def check(self) -> None:
        """Raise StudyError with all problems of manifest, claims, headlines and figures.

        Next to a faulty manifest only the keys and values of the other files are checked, not their names.
        """
        problems = _problems_of(lambda: self.study)
        what = "the study has" if problems else "claims and figures have"
        others = self._forms() if problems else (lambda: (self.claims, self.headlines), lambda: self.figures)
        for read in (*others, lambda: self.text_of(README), lambda: self.text_of(NOTES)):
            problems += _problems_of(read)
        if not problems and self.has(CLAIMS):
            problems += map(self._source(CLAIMS).problem, self._misspelt_artifacts())
        if problems := list(dict.fromkeys(problems)):
            count = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"
            raise StudyError(f"{what} {count}", problems=tuple(problems))

    def _forms(self) -> tuple[Callable[[], object], ...]:
        """Return the readers of the other files that do not need the study."""
        from longfat.figures.document import FiguresDocument
        from longfat.metrics.registry import load_own_metrics
        from longfat.relations.claims import ClaimsDocument
        from longfat.relations.headlines import HeadlinesDocument

        def form(file: str, model: type[BaseModel], key: str) -> object:
            load_own_metrics(self.path)
            section, context = file.removesuffix(".yaml"), {"folder": str(self.path)}
            return document_of(self._source(file), model, section, key, lambda _: (), context)

        files = (
            (CLAIMS, ClaimsDocument, "id"),
            (HEADLINES, HeadlinesDocument, "id"),
            (FIGURES, FiguresDocument, "artifact"),
        )
        return tuple(partial(form, *one) for one in files if self.has(one[0]))

    def _misspelt_artifacts(self) -> Iterator[Finding]:
        """Yield the artifacts of claims that look like a misspelt figure; a claim may have another artifact."""
        figures = [name for figure in self.figures.figures for name in (figure.artifact, figure.part_of) if name]
        for index, claim in enumerate(self._source(CLAIMS).data.get("claims") or ()):
            given = claim.get("artifact")
            near = nearest(given, figures)
            if near and given is not None and given not in figures and not self.study.header.paper:
                yield Finding(("claims", index, "artifact"), f"{given!r} is not a figure", near)

    def experiments_by_artifact(self) -> dict[str, tuple[str, ...]]:
        """Return the experiments of every artifact, in the order of figures.yaml, then claims.yaml."""
        found: dict[str, dict[str, None]] = {}
        for artifact, experiments in self._pairs():
            found.setdefault(artifact, {}).update(dict.fromkeys(experiments))
        return {artifact: tuple(experiments) for artifact, experiments in found.items()}

    def experiments_named(self, only: Sequence[str]) -> tuple[str, ...]:
        """Return the experiments that ``only`` names, by their ids or by artifacts.

        Raises StudyError with every unknown name.
        """
        own = [experiment.id for experiment in self.study.experiments]
        if all(name in own for name in only):
            return tuple(only)
        artifacts = self.experiments_by_artifact()
        known = [*artifacts, *own]
        problems = [
            Problem("--only", None, "", *unknown("artifact or experiment", name, known))
            for name in only
            if name not in known
        ]
        problems += [
            Problem("--only", None, "", f"{name!r} has no experiment", "it is drawn without a run")
            for name in only
            if name not in own and not artifacts.get(name, own)
        ]
        if problems:
            raise StudyError("the plan cannot be made", problems=tuple(problems))
        chosen = {experiment for name in only for experiment in ([name] if name in own else artifacts[name])}
        return tuple(name for name in own if name in chosen)

    def _read(self, *files: str) -> dict[str, str | None]:
        from longfat.metrics.registry import OWN_METRICS, load_own_metrics, own_metrics_digest

        load_own_metrics(self.path)
        found = {name: self._sources[name].sha256 if name in self._sources else None for name in files}
        return {**found, OWN_METRICS: own_metrics_digest(self.path)}

    def _pairs(self) -> Iterator[tuple[str, Iterable[str]]]:
        for figure in self.figures.figures:
            experiments = figure.experiments(self.study)
            yield figure.artifact, experiments
            if figure.part_of:
                yield figure.part_of, experiments
        for claim in self.claims:
            for artifact in (claim.artifact, *claim.also):
                if artifact:
                    yield artifact, [name for one in claim.relations for name in one.experiments(self.study)]

    def _source(self, file: str) -> Source:
        if file not in self._sources:
            self._sources[file] = read_source(self.path / file)
        return self._sources[file]


def _problems_of(read: Callable[[], object]) -> list[Problem]:
    try:
        read()
    except StudyError as error:
        return list(error.problems) or [Problem(error.where or "", None, "", error.message, error.hint)]
    return []


def studies_in(experiments: Path) -> list[StudyFolder]:
    """Return the studies of a folder of studies, by name."""
    return [StudyFolder(path.parent) for path in sorted(experiments.glob(f"*/{MANIFEST}"))]
