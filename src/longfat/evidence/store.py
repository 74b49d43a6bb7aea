# SPDX-License-Identifier: Apache-2.0
"""Files of evidence: ``experiments/STUDY/evidence/BASELINE/STACK/PROFILE/EXPERIMENT.jsonl``, one line per run.

Owns reading, with all problems at once, and writing in canonical order. After a merge by git, lines may be in any order
and repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from longfat.evidence.rows import Conflict, Row, merge, read_line, standing
from longfat.spec.plain import canonical_json
from longfat.system.errors import Problem, StudyError
from longfat.system.files import write_whole

EVIDENCE = "evidence"
FORMAT = 1
SUFFIX = ".jsonl"


@dataclass(frozen=True, order=True)
class Place:
    """The place of rows in a study's folder of evidence."""

    baseline: str
    stack: str
    profile: str
    experiment: str

    def path(self, folder: Path) -> Path:
        """Return the file below a study's folder."""
        return folder / EVIDENCE / self.baseline / self.stack / self.profile / f"{self.experiment}{SUFFIX}"

    def head(self, study: str) -> str:
        """Return the first line of the file."""
        return canonical_json(
            {
                "epoch": self.baseline,
                "experiment": self.experiment,
                "format": FORMAT,
                "profile": self.profile,
                "stack": self.stack,
                "study": study,
            }
        )


Rows = Mapping[Place, Mapping[tuple[str, int, str], Row]]


def baselines_with_evidence(folder: Path) -> list[str]:
    """Return the names of the baselines with evidence in a study's folder, the oldest first."""
    home = folder / EVIDENCE
    return sorted(path.name for path in home.iterdir() if any(path.rglob(f"*{SUFFIX}"))) if home.is_dir() else []


def read_rows(folder: Path, study: str, baseline: str | None = None) -> Rows:
    """Read the rows of a study's folder, of one baseline or of all, each run once.

    Raises StudyError with every line that is damaged, belongs to another study or format, or contradicts another.
    """
    problems: list[Problem] = []
    found: dict[Place, Mapping[tuple[str, int, str], Row]] = {}
    home = folder / EVIDENCE
    for path in sorted(path for path in home.rglob("[!.]*") if path.is_file()):
        parts = path.relative_to(home).parts
        if len(parts) != 4 or path.suffix != SUFFIX:
            problems.append(
                Problem(
                    str(path),
                    None,
                    "",
                    "the path of a file of evidence must be BASELINE/STACK/PROFILE/EXPERIMENT.jsonl",
                )
            )
            continue
        place = Place(parts[0], parts[1], parts[2], parts[3].removesuffix(SUFFIX))
        if baseline in (None, place.baseline):
            found[place] = _read(path, place, study, problems)
    if problems:
        hint = "`./just again RUN` repeats a run; git has the former file"
        raise StudyError("evidence cannot be used as it is", hint=hint, problems=tuple(problems))
    return found


def merge_rows(one: Rows, other: Rows) -> Rows:
    """Merge two sets of rows. Raises StudyError with every run that has different outcomes."""
    result: dict[Place, dict[tuple[str, int, str], Row]] = {}
    problems = []
    for place in (*one, *(place for place in other if place not in one)):
        own = result.setdefault(place, {})
        for row in standing((*one.get(place, {}).values(), *other.get(place, {}).values())):
            try:
                own[row.key] = merge(own[row.key], row) if row.key in own else row
            except Conflict as error:
                problems.append(two_outcomes(place, row, error))
    if problems := problems or [*_contradictions(result)]:
        raise contradiction(problems)
    return result


def _contradictions(rows: Rows) -> Iterator[Problem]:
    """Yield each row that contradicts one of the same run in another profile, whose runs may be the same."""
    known: dict[tuple[str, str, str, tuple[str, int, str]], Row] = {}
    for place, of in rows.items():
        for row in (row for row in of.values() if row.withdrawn is None):
            other = known.setdefault((place.baseline, place.stack, place.experiment, row.key), row)
            try:
                merge(other, row)
            except Conflict as error:
                yield two_outcomes(place, row, error)


def two_outcomes(place: Place, row: Row, error: Conflict) -> Problem:
    """Return the problem that a row contradicts another row of its run."""
    return Problem(str(place.path(Path())), None, row.name, f"two outcomes of one run: {error}")


def contradiction(problems: Sequence[Problem]) -> StudyError:
    """Return the error about runs that have two outcomes."""
    hint = "equal runs give equal bytes, so one of them is wrong: `./just again RUN` shows which"
    return StudyError("evidence contradicts itself", hint=hint, problems=tuple(problems))


def write_rows(folder: Path, study: str, rows: Rows) -> list[Path]:
    """Write the changed files and remove files without rows; return the written files."""
    written = []
    for place, own in rows.items():
        path = place.path(folder)
        if not own:
            path.unlink(missing_ok=True)
            continue
        text = "".join(f"{line}\n" for line in (place.head(study), *(own[key].line() for key in sorted(own))))
        if path.exists() and path.read_text(encoding="ascii") == text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
        written.append(path)
    return written


def _read(path: Path, place: Place, study: str, problems: list[Problem]) -> Mapping[tuple[str, int, str], Row]:
    """Read the rows of one file, and append its faults to ``problems``."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        problems.append(Problem(str(path), None, "", f"the file cannot be read: {error}"))
        return {}
    found: list[tuple[int, Row]] = []
    headed = False
    for number, line in enumerate(lines, start=1):
        try:
            data = read_line(line)
            if "format" in data:
                _check_head(data, place, study)
                headed = True
                continue
            found.append((number, Row.read(data)))
        except KeyError as error:
            problems.append(Problem(str(path), number, str(error.args[0]), "is missing"))
        except (TypeError, ValueError, RecursionError) as error:
            problems.append(Problem(str(path), number, "", f"the line cannot be read: {error}"))
    if not headed and not any(problem.file == str(path) for problem in problems):
        problems.append(Problem(str(path), 1, "format", "the first line with study and format is missing"))
    return _merged(path, found, problems)


def _merged(path: Path, found: list[tuple[int, Row]], problems: list[Problem]) -> Mapping[tuple[str, int, str], Row]:
    """Merge the rows of a file, each with its line, and append contradictions to ``problems``."""
    rows: dict[tuple[str, int, str], Row] = {}
    began: dict[tuple[str, int, str], int] = {}
    counted = {id(row) for row in standing(row for _, row in found)}
    for number, row in ((number, row) for number, row in found if id(row) in counted):
        try:
            rows[row.key] = merge(rows[row.key], row) if row.key in rows else row
        except Conflict as error:
            message = f"two outcomes of one run, here and in line {began[row.key]}: {error}"
            problems.append(Problem(str(path), number, row.name, message))
        began.setdefault(row.key, number)
    return rows


def _check_head(data: Mapping[str, object], place: Place, study: str) -> None:
    if data["format"] != FORMAT:
        raise ValueError(f"format is {data['format']!r}; this version reads {FORMAT}")
    expected = read_line(place.head(study))
    for name, value in expected.items():
        if data.get(name) != value:
            raise ValueError(f"{name} is {data.get(name)!r}, but the file is in the folder of {value!r}")
