# SPDX-License-Identifier: Apache-2.0
"""``again``: repeat a run, optionally with captures, or a sample of the evidence.

The raw files of a repeated run stay in ``results/again`` or ``results/pcap``.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from longfat.backends.protocol import Backend, Feature
from longfat.backends.registry import open_backend, traits_of
from longfat.cli.console import Output, say, say_place
from longfat.cli.fill import seconds_of
from longfat.cli.find_run import AGAIN, PCAP, Found, find_run
from longfat.cli.options import Budget, InResults, Jobs, Target
from longfat.cli.outcome import expect, refuse
from longfat.cli.paths import repository_root, study_path
from longfat.cli.run import execute_runs
from longfat.cli.sample import print_mismatches, repeat, repeat_sample, require_sample, rows_that_count
from longfat.cli.study import find_study, known_baselines
from longfat.execute.record.bundle import SUMS, is_measured, run_folder_name
from longfat.execute.record.verify import read_record
from longfat.execute.results import open_results
from longfat.spec.runspec import CapturePoint, RunSpec
from longfat.system.errors import RigError, StudyError, all_of

NOT_COMPARED = "run.json"  # start time and duration of the run
SHARE = "1%"  # share of a study's evidence, at least 20 runs


def again(
    out: Output,
    target: Target = None,
    capture: Annotated[bool, typer.Option("--capture", help="capture all traffic of the run")] = False,
    at: Annotated[CapturePoint | None, typer.Option(help="place of the capture (default: sender)")] = None,
    sample: Annotated[
        str | None,
        typer.Option(help=f"number of runs, or a percentage of the evidence, then at least 20 (default: {SHARE})"),
    ] = None,
    sample_seed: Annotated[int | None, typer.Option(min=0, help="seed of the sample (default: 1)")] = None,
    budget: Budget = None,
    jobs: Jobs = None,
    results: InResults = None,
) -> bool:
    """Repeat a run and compare it byte by byte; or repeat a sample of the evidence of a study, or of all studies."""
    if sample is None and target is not None and not _is_study(target):
        *_, found = all_of(
            lambda: refuse({"--sample-seed": sample_seed, "--budget": budget, "--jobs": jobs}, "one run is repeated"),
            lambda: refuse({"--at": None if capture else at}, "without --capture nothing is captured"),
            lambda: find_run(target, results),
        )
        return capture_run(found, at or "sender", out) if capture else repeat_run(found, out)
    *_, seconds = all_of(
        lambda: refuse(
            {"--capture": capture, "--at": at, "--results": results}, "a sample of the evidence is repeated"
        ),
        lambda: require_sample(sample or SHARE),
        lambda: target is None or find_study(target),
        lambda: seconds_of(budget),
    )
    same = repeat_sample(target, sample or SHARE, 1 if sample_seed is None else sample_seed, seconds, jobs, out)
    return expect(same, "some runs differ from the evidence: its verdicts are unverified")


def _is_study(target: str) -> bool:
    try:
        study_path(target)
    except StudyError:
        return False
    return True


def repeat_run(found: Found, out: Output) -> bool:
    """Repeat a run; return whether it is byte-identical to its record, or to its row of the evidence."""
    if found.folder is None:
        return _repeat_row(found, out)
    read_record(found.folder)  # its checksums stand for its files below
    folder = execute_again(found, found.spec, AGAIN, out)
    pins, files, differing = compare(found.folder, folder)
    if pins:
        say(out, f"made with another {' and another '.join(pins)}: only measurements are compared")
    if not differing:
        say(out, f"byte-identical: {len(files)} files", "green")
    for name in differing:
        say(out, f"{name} differs", "red")
    if differing:
        say_place(out, "recorded", found.folder)
        say_place(out, "repeated", folder)
    places = {"kept": str(found.folder), "again": str(folder)}
    out.result(run=found.spec.run_id, same=not differing, **places, files=files, differing=differing, pins=pins)
    return not differing


def execute_again(found: Found, spec: RunSpec, place: str, console: Console) -> Path:
    """Execute a run with this machine's kernel, image and code, and return the folder of its record.

    Raises StudyError on a backend of a lab, RigError if the run fails.
    """
    backend = _open(found, console)
    spec = dataclasses.replace(spec, pins=pins_here(backend, spec, found.source))
    planned = found.planned(spec)
    with open_results(repository_root() / "results" / place) as results:
        folder = results.raw / run_folder_name(planned.scenario, planned.repetition, planned.run_id)
        if found.folder is not None and folder.resolve() == found.folder.resolve():
            message = "the record is itself a repetition, and would be replaced"
            raise StudyError(message, where=str(folder), hint="name the first record, or move this one")
        shutil.rmtree(folder, ignore_errors=True)
        if execute_runs([planned], backend, results, 1, console).failed:
            raise RigError("the run failed", where=str(folder), hint=f"`./just show {folder}` prints the reason")
    return folder


def _open(found: Found, console: Console) -> Backend:
    """Open the backend of a run, with the kernels of its stack and of the run."""
    traits = traits_of(found.backend)
    if traits.lab:
        message = f"single runs of backend {found.backend!r} cannot be repeated"
        raise StudyError(message, hint="`./just run` repeats a study")
    settings: dict[str, Any] = {}
    if Feature.KERNELS in traits.can:
        settings["kernels"], own = found.kernels
        settings |= {"own": own} if own else {}
    return open_backend(found.backend, settings, say=partial(say, console))


def pins_here(backend: Backend, spec: RunSpec, source: Mapping[str, Any]) -> dict[str, str]:
    """Return the pins of the run on this machine: with its kernel, with the present one of that name, or the first.

    ``source`` is its kernel's source in the lock. Raises StudyError if files of the study in its kernel have changed.
    """
    here, kernels, named = backend.pins(), backend.capabilities().kernels, spec.pins.get("kernel", "")
    if named in kernels.values():
        return {**here, "kernel": named}
    if source.get("own"):
        hint = "`./just run` repeats the study with the present files"
        raise StudyError(f"{' and '.join(source['own'])} changed since the run", hint=hint)
    digest = kernels.get(named) or kernels.get(source.get("name", ""))
    return {**here, "kernel": digest} if digest else here


def compare(recorded: Path, repeated: Path) -> tuple[list[str], list[str], list[str]]:
    """Compare two records of a run.

    Returns the names of the pins that differ, of the compared files, and of the files that differ or are in one record
    only. If a pin differs, only measurements are compared.
    """
    one, other = _sums(recorded), _sums(repeated)
    own, theirs = (RunSpec.from_json((folder / "spec.json").read_text()).pins for folder in (recorded, repeated))
    pins = sorted(name for name in {*own, *theirs} if own.get(name) != theirs.get(name))
    files = sorted(name for name in {*one, *other} if not pins or is_measured(name))
    return pins, files, [name for name in files if one.get(name) != other.get(name)]


def _sums(folder: Path) -> Mapping[str, str]:
    """Return the checksums of a record's files, by name."""
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    return {line[66:]: line[:64] for line in lines if line[66:] != NOT_COMPARED}


def _repeat_row(found: Found, out: Output) -> bool:
    """Repeat a run that has no raw files, and compare it with its row of the evidence."""
    assert found.row is not None
    rows = [one for one in rows_that_count(find_study(found.study), known_baselines()) if one.row.key == found.row.key]
    if not rows:
        raise StudyError("the evidence of this run is of an older baseline", where=found.name)
    mismatches = repeat(rows[:1], 1, out)
    if not mismatches:
        say(out, "byte-identical, by every value and digest in the evidence", "green")
    print_mismatches(mismatches, out)
    out.result(run=found.row.run_id, same=not mismatches, differing=[mismatch.text for mismatch in mismatches])
    return not mismatches


def capture_run(found: Found, at: CapturePoint, out: Output) -> bool:
    """Repeat a run with a capture of all its traffic at one place."""
    names = tuple(one.name for one in found.spec.sent)
    probes = dataclasses.replace(found.spec.probes, capture=names, capture_at=(at,))
    folder = execute_again(found, dataclasses.replace(found.spec, probes=probes), PCAP, out)
    files = sorted((folder / "captures").glob("*.pcap"))
    for path in files:
        say_place(out, f"capture of {path.stem}, {path.stat().st_size / 1e6:.3g} MB", path)
    if found.folder is not None:
        _, _, differing = compare(found.folder, folder)
        if changed := [name for name in differing if is_measured(name) and "/" not in name]:
            say(out, f"these measurements differ from those without a capture: {', '.join(changed)}", "yellow")
    out.result(run=found.spec.run_id, captures=[str(path) for path in files])
    return True
