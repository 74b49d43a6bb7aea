# SPDX-License-Identifier: Apache-2.0
"""``again``: a run repeated, with captures if wanted, or a sample of the evidence repeated.

The raw files of a repeated run stay in ``results/again`` or ``results/pcap``.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from longfat.backends.protocol import Backend, Feature
from longfat.backends.registry import open_backend, traits_of
from longfat.cli.console import Output, listen, say, say_place
from longfat.cli.fill import seconds_of
from longfat.cli.find_run import AGAIN, PCAP, Found, find_run
from longfat.cli.options import Baseline, Budget, InResults, Jobs, Opened, Target
from longfat.cli.outcome import expect
from longfat.cli.paths import repository_root, study_path
from longfat.cli.sample import print_mismatches, repeat, repeat_sample, rows_that_count
from longfat.cli.study import find_study
from longfat.evidence.baselines import FOLDER, read_baselines
from longfat.evidence.compare import first_packet
from longfat.execute.memory import available_bytes
from longfat.execute.record.bundle import SUMS, run_folder_name
from longfat.execute.record.measured import is_measured
from longfat.execute.results import open_results
from longfat.execute.study import execute
from longfat.spec.runspec import CapturePoint, RunSpec
from longfat.study.catalog.kernels import KERNELS
from longfat.study.catalog.stacks import kernel_of_stack
from longfat.system.errors import RigError, StudyError

NOT_COMPARED = "run.json"  # the time of the run and its duration
VIEWER = "wireshark"
SHARE = "1%"  # share of a study's evidence, at least 20 runs


@dataclass(frozen=True)
class Comparison:
    """Two records of one run: the compared files, and those that differ or are in one record only.

    ``pins`` names what the two were made with if that differs; then only measurements are compared.
    """

    files: tuple[str, ...]
    differing: tuple[str, ...]
    pins: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether the records are byte-identical."""
        return not self.differing


def again(
    out: Output,
    target: Target = None,
    capture: Annotated[bool, typer.Option("--capture", help="capture all traffic of the run")] = False,
    at: Annotated[CapturePoint, typer.Option(help="place of the capture")] = "sender",
    opened: Opened = False,
    sample: Annotated[
        str | None,
        typer.Option(help=f"number of runs of the evidence, or a percentage, at least 20 runs (default: {SHARE})"),
    ] = None,
    sample_seed: Annotated[int, typer.Option(min=0, help="seed of the sample")] = 1,
    budget: Budget = None,
    jobs: Jobs = None,
    baseline: Baseline = None,
    results: InResults = None,
) -> bool:
    """Repeat a run and compare it byte by byte; or repeat a sample of the evidence of a study, or of all studies."""
    if sample is None and target is not None and not _is_study(target):
        found = find_run(target, results)
        return capture_run(found, at, out, opened=opened) if capture else repeat_run(found, out)
    same = repeat_sample(target, sample or SHARE, sample_seed, seconds_of(budget), jobs, baseline, out)
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
    folder = execute_again(found, found.spec, AGAIN, out)
    compared = compare(found.folder, folder)
    _print(compared, found.folder, folder, out)
    places = {"kept": str(found.folder), "again": str(folder)}
    out.result(run=found.spec.run_id, same=compared.same, **places, **dataclasses.asdict(compared))
    return compared.same


def execute_again(found: Found, spec: RunSpec, place: str, console: Console) -> Path:
    """Execute a run with kernel, image and code of this machine, and return the folder of its record.

    Raises StudyError on a backend of a lab, RigError when the run fails.
    """
    backend = _open(found, console)
    spec = dataclasses.replace(spec, pins=pins_here(backend, spec))
    planned = found.planned(spec)
    with open_results(repository_root() / "results" / place) as results:
        folder = results.raw / run_folder_name(planned.scenario, planned.repetition, planned.run_id)
        shutil.rmtree(folder, ignore_errors=True)
        memory = available_bytes() if traits_of(backend.name).guests else None
        with listen(results, console) as events:
            done = execute([planned], backend, results, jobs=1, events=events, memory_bytes=memory)
        if done.failed:
            raise RigError("the run failed", where=str(folder), hint=f"`longfat show {folder}` prints the reason")
    return folder


def _open(found: Found, console: Console) -> Backend:
    """Open the backend of a run, with the kernel that the run names."""
    traits = traits_of(found.backend)
    if traits.lab:
        message = f"single runs of backend {found.backend!r} are not repeated"
        raise StudyError(message, hint="`longfat run` repeats a study")
    settings: dict[str, Any] = {"kernels": _kernels(found)} if Feature.KERNELS in traits.can else {}
    return open_backend(found.backend, settings, say=partial(say, console))


def _kernels(found: Found) -> tuple[str, ...]:
    """Return the kernel of the run's stack, and the kernel that its pin names."""
    own = kernel_of_stack(found.stack or "")
    named = found.spec.pins.get("kernel", own)
    return tuple(dict.fromkeys((own, named))) if named in KERNELS else (own,)


def pins_here(backend: Backend, spec: RunSpec) -> dict[str, str]:
    """Return the pins of the run on this machine: with its own kernel if present, else with the backend's first."""
    here, kernels, named = backend.pins(), backend.capabilities().kernels, spec.pins.get("kernel", "")
    digest = kernels.get(named, named if named in kernels.values() else None)
    return here if digest is None else {**here, "kernel": digest}


def compare(kept: Path, now: Path) -> Comparison:
    """Compare two records of a run."""
    one, other = _sums(kept), _sums(now)
    own, theirs = (RunSpec.from_json((folder / "spec.json").read_text()).pins for folder in (kept, now))
    pins = tuple(sorted(name for name in {*own, *theirs} if own.get(name) != theirs.get(name)))
    if pins:
        one, other = ({name: digest for name, digest in sums.items() if is_measured(name)} for sums in (one, other))
    files = tuple(sorted({*one, *other}))
    return Comparison(files, tuple(name for name in files if one.get(name) != other.get(name)), pins)


def _sums(folder: Path) -> Mapping[str, str]:
    """Return the checksums of a record's files, by name."""
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    return {line[66:]: line[:64] for line in lines if line[66:] != NOT_COMPARED}


def _print(compared: Comparison, kept: Path, now: Path, console: Console) -> None:
    if compared.pins:
        say(console, f"made with another {' and another '.join(compared.pins)}: only measurements are compared")
    if compared.same:
        say(console, f"byte-identical: {len(compared.files)} files", "green")
        return
    for name in compared.differing:
        say(console, f"{name} differs", "red")
    if packet := first_packet(kept, now):
        say(console, f"first packet that differs: {packet}")
    say_place(console, "kept", kept)
    say_place(console, "now", now)


def _repeat_row(found: Found, out: Output) -> bool:
    """Repeat a run whose raw files are absent, and compare it with its row of the evidence."""
    baselines = read_baselines(repository_root() / FOLDER)
    assert found.row is not None
    rows = [one for one in rows_that_count(find_study(found.study), baselines) if one.row.key == found.row.key]
    if not rows:
        hint = "`longfat again STUDY --baseline BASELINE` repeats such runs"
        raise StudyError("the evidence of this run is of an older baseline", where=found.name, hint=hint)
    mismatches = repeat(rows[:1], 1, out)
    if not mismatches:
        say(out, "byte-identical, by every value and digest in the evidence", "green")
    print_mismatches(mismatches, out)
    out.result(run=found.row.run_id, same=not mismatches, differing=[mismatch.text for mismatch in mismatches])
    return not mismatches


def capture_run(found: Found, at: CapturePoint, out: Output, *, opened: bool = False) -> bool:
    """Repeat a run with a capture of all its traffic at one place."""
    names = tuple(one.name for one in found.spec.sent)
    probes = dataclasses.replace(found.spec.probes, capture=names, capture_at=(at,))
    folder = execute_again(found, dataclasses.replace(found.spec, probes=probes), PCAP, out)
    files = sorted((folder / "captures").glob("*.pcap"))
    for path in files:
        say_place(out, f"capture of {path.stem}, {path.stat().st_size / 1e6:.3g} MB", path)
    if found.folder is not None:
        changed = [name for name in compare(found.folder, folder).differing if is_measured(name) and "/" not in name]
        if changed:
            say(out, f"these measurements differ from those without a capture: {', '.join(changed)}", "yellow")
    if opened:
        _open_captures(files, out)
    out.result(run=found.spec.run_id, captures=[str(path) for path in files])
    return True


def _open_captures(files: list[Path], console: Console) -> None:
    """Open captures in Wireshark, or print why that is impossible."""
    viewer = shutil.which(VIEWER)
    if viewer is None or not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        say(console, f"not opened: {f'no {VIEWER} in PATH' if viewer is None else 'no display'}")
        return
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.Popen([viewer, *map(str, files)], start_new_session=True, **quiet)
