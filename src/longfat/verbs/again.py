# SPDX-License-Identifier: Apache-2.0
"""The verbs ``again`` and ``pcap``: one run once more, compared to the byte with what is kept, or with captures.

Its raw files are left in ``results/again``, or ``results/pcap``.
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
from typing import Any

from rich.console import Console

from longfat.backends.protocol import Backend, Feature
from longfat.backends.registry import open_backend, traits_of
from longfat.catalog.kernels import KERNELS
from longfat.catalog.stacks import kernel_of_stack
from longfat.errors import RigError, StudyError
from longfat.evidence.compare import first_packet
from longfat.evidence.epochs import FOLDER, read_epochs
from longfat.execute.memory import available_bytes
from longfat.execute.results import open_results
from longfat.execute.study import execute
from longfat.record.bundle import SUMS, run_folder_name
from longfat.record.measured import is_measured
from longfat.runspec import CapturePoint, RunSpec
from longfat.verbs.found import AGAIN, PCAP, Found, find_run
from longfat.verbs.listening import listen
from longfat.verbs.places import repository_root
from longfat.verbs.say import print_json, say, say_place
from longfat.verbs.study import find_study
from longfat.verbs.verify import rows_that_count, run_again, tell

FORMAT = 1
NOT_COMPARED = "run.json"  # when the run was made, and how long it took
VIEWER = "wireshark"


@dataclass(frozen=True)
class Comparison:
    """Two records of one run: the files that both have, those that differ, those that only one has.

    ``pins`` names what the two ran with where that is not the same; then only what was measured is compared.
    """

    files: tuple[str, ...]
    differing: tuple[str, ...]
    only_one: tuple[str, ...]
    pins: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether all is identical to the byte."""
        return not (self.differing or self.only_one)


def again(text: str, given: Path | None, console: Console, *, as_json: bool) -> bool:
    """Run a run once more; whether it is to the byte what is kept of it."""
    found = find_run(text, given)
    if found.folder is None:
        return _again_by_evidence(found, console, as_json=as_json)
    folder = once_more(found, found.spec, AGAIN, console)
    compared = compare(found.folder, folder)
    if as_json:
        places = {"kept": str(found.folder), "again": str(folder)}
        told = {"format": FORMAT, "run": found.spec.run_id, "same": compared.same}
        print_json({**told, **places, **dataclasses.asdict(compared)})
    else:
        _print(compared, found.folder, folder, console)
    return compared.same


def once_more(found: Found, spec: RunSpec, place: str, console: Console) -> Path:
    """Execute a run with what this machine has, whatever is recorded; the folder of its record.

    Raises StudyError on a backend whose runs are not repeatable that easily, RigError when it fails.
    """
    backend = _opened(found, console)
    spec = dataclasses.replace(spec, pins=pins_here(backend, spec))
    planned = found.planned(spec)
    with open_results(repository_root() / "results" / place) as results:
        folder = results.raw / run_folder_name(planned.scenario, planned.repetition, planned.run_id)
        shutil.rmtree(folder, ignore_errors=True)
        memory = available_bytes() if traits_of(backend.name).guests else None
        with listen(results, console) as events:
            done = execute([planned], backend, results, jobs=1, events=events, memory_bytes=memory)
        if done.failed:
            raise RigError("the run failed", where=str(folder), hint=f"`longfat show {folder}` says why")
    return folder


def _opened(found: Found, console: Console) -> Backend:
    """The backend of a run, with the kernel that the run names, if it names one."""
    traits = traits_of(found.backend)
    if traits.lab:
        raise StudyError(f"runs of backend {found.backend!r} are not repeated one by one", hint="`longfat run` does it")
    settings: dict[str, Any] = {"kernels": _kernels(found)} if Feature.KERNELS in traits.can else {}
    return open_backend(found.backend, settings, say=partial(say, console))


def _kernels(found: Found) -> tuple[str, ...]:
    """List the kernels that a backend is opened with: the kernel of the run's stack, and one that its pin names."""
    own = kernel_of_stack(found.stack or "")
    named = found.spec.pins.get("kernel", own)
    return tuple(dict.fromkeys((own, named))) if named in KERNELS else (own,)


def pins_here(backend: Backend, spec: RunSpec) -> dict[str, str]:
    """Return the pins of the run here: with its own kernel if that is here, else with the backend's first."""
    here, kernels, named = backend.pins(), backend.capabilities().kernels, spec.pins.get("kernel", "")
    digest = kernels.get(named, named if named in kernels.values() else None)
    return here if digest is None else {**here, "kernel": digest}


def compare(kept: Path, now: Path) -> Comparison:
    """Hold one record of a run against another."""
    one, other = _sums(kept), _sums(now)
    own, theirs = (RunSpec.from_json((folder / "spec.json").read_text()).pins for folder in (kept, now))
    pins = tuple(sorted(name for name in {*own, *theirs} if own.get(name) != theirs.get(name)))
    if pins:
        one, other = ({name: digest for name, digest in sums.items() if is_measured(name)} for sums in (one, other))
    both = sorted({*one} & {*other})
    differing = tuple(name for name in both if one[name] != other[name])
    return Comparison(tuple(both), differing, tuple(sorted({*one} ^ {*other})), pins)


def _sums(folder: Path) -> Mapping[str, str]:
    """The checksums of a record's files, by name."""
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    return {line[66:]: line[:64] for line in lines if line[66:] != NOT_COMPARED}


def _print(compared: Comparison, kept: Path, now: Path, console: Console) -> None:
    if compared.pins:
        say(console, f"made with another {' and another '.join(compared.pins)}: only what was measured is compared")
    if compared.same:
        say(console, f"identical to the byte: {len(compared.files)} files", "green")
        return
    for name in compared.differing:
        say(console, f"{name} differs", "red")
    for name in compared.only_one:
        say(console, f"{name} is on one side only", "red")
    if packet := first_packet(kept, now):
        say(console, f"first packet that differs: {packet}")
    say_place(console, "kept", kept)
    say_place(console, "now", now)


def _again_by_evidence(found: Found, console: Console, *, as_json: bool) -> bool:
    """Compare a run, whose raw files are not here, with its row of the evidence."""
    folder = find_study(found.study)
    epochs = read_epochs(repository_root() / FOLDER)
    assert found.row is not None
    rows = [one for one in rows_that_count(folder, epochs) if one.row.key == found.row.key]
    if not rows:
        hint = "`longfat evidence verify --epoch EPOCH` runs those again"
        raise StudyError("the evidence of this run is of an older epoch", where=found.name, hint=hint)
    mismatches = run_again(rows[:1], 1, console)
    if as_json:
        told = [mismatch.text for mismatch in mismatches]
        print_json({"format": FORMAT, "run": found.row.run_id, "same": not mismatches, "differing": told})
        return not mismatches
    if not mismatches:
        say(console, "identical to the byte, by every value and digest that the evidence keeps", "green")
    tell(mismatches, console)
    return not mismatches


def pcap(text: str, given: Path | None, console: Console, *, at: CapturePoint, opened: bool, as_json: bool) -> bool:
    """Run a run again with a capture of all its traffic at one place, and open the captures if a viewer is there."""
    found = find_run(text, given)
    names = tuple(one.name for one in found.spec.sent)
    probes = dataclasses.replace(found.spec.probes, capture=names, capture_at=(at,))
    folder = once_more(found, dataclasses.replace(found.spec, probes=probes), PCAP, console)
    files = sorted((folder / "captures").glob("*.pcap"))
    if as_json:
        print_json({"format": FORMAT, "run": found.spec.run_id, "captures": [str(path) for path in files]})
        return True
    for path in files:
        say_place(console, f"capture of {path.stem}, {path.stat().st_size / 1e6:.3g} MB", path)
    if found.folder is not None:
        changed = [name for name in compare(found.folder, folder).differing if is_measured(name) and "/" not in name]
        if changed:
            say(console, f"what was measured is not as without the capture: {', '.join(changed)}", "yellow")
    viewer = shutil.which(VIEWER)
    if not opened or viewer is None or not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        why = "not asked for" if not opened else f"no {VIEWER} in PATH" if viewer is None else "no display"
        say(console, f"not opened: {why}; the headers of every packet are in the files, for any reader of pcap")
        return True
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.Popen([viewer, *map(str, files)], start_new_session=True, **quiet)
    return True
