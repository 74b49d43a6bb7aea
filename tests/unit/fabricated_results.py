# SPDX-License-Identifier: Apache-2.0
"""Results of a small study, fabricated: a manifest, its lock, and raw records with the fake backend's truth.

Serves the tests of dataset and analysis; a record can be bent before it is committed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fake_backend import FakeBackend

from longfat.data.opened import OpenedStudy, draw_all
from longfat.data.study_folder import StudyFolder
from longfat.dataset.build import build_dataset
from longfat.execute.record.bundle import Bundle, RunFacts, run_folder_name
from longfat.plan import PlannedRun, build_plan, write_lock
from longfat.relations.judge import Verdict, judge
from longfat.report.report import write_report
from longfat.study.load import load_study
from longfat.system.identity import KernelSource

EXACT = "    clock_tolerance: 0 ppm # exact, so one repetition decides\n    phases: fixed\n"  # `delay` in the manifest
DRAWN = "        start_jitter: 1 ms\n"
MANIFEST = """\
format: 2
study: small
title: A <small> study
paper: {authors: [A. Author], year: 2003, identifier: TR-1}
algorithms:
  standard: {cca: reno}
  highspeed: {cca: highspeed}
hosts: {mtu: 9000 B, txqueuelen: 100}
experiments:
  - id: delay
    topology: {kind: delay, rate: 1 Gbit/s, rtt: 30 ms}
    flows:
      - name: stream1
        from: client1
        to: server
        algorithm: "${algorithm}"
        window: "${window}"
        duration: 1 s
    clock_tolerance: 0 ppm # exact, so one repetition decides
    phases: fixed
    sweep:
      product: {algorithm: [standard, highspeed], window: [1 MiB, 8 MiB]}
    repetitions: 2
  - id: one-drop
    topology: {kind: delay, rate: 1 Gbit/s, rtt: 30 ms}
    flows:
      - {name: stream1, from: client1, to: server, algorithm: standard, window: 8 MiB, duration: 3 s}
    probes: {capture: [stream1]}
    drops: [{at: 1500 ms}]
    clock_tolerance: 0 ppm
    phases: fixed
"""

CLAIMS = """\
format: 2
study: small
claims:
  - id: window-limits
    artifact: fig-1
    statement: A larger window <gives> more.
    paper: {value: 1 MiB < 8 MiB, where: figure 1}
    relation: goodput[delay, window=8 MiB] > goodput[delay, window=1 MiB] for algorithm
  - id: halves
    artifact: fig-2
    statement: A drop halves the window.
    paper: {value: 0.5, where: figure 2}
    relation: drop_ratio[one-drop, at=1500 ms] = 0.5
"""

FIGURES = """\
format: 2
study: small
paper: {artifacts: 40, claims: 90}
figures:
  - bars: fig-1
    title: goodput
    of: goodput[delay]
    x: window in MiB
    series: algorithm
    labels: {x: window (MiB), y: goodput (Mb/s)}
    paper: About 940 & no more.
    marks: [{value: 940, label: 940 Mb/s}]
  - timeseries: fig-2
    title: one drop
    runs: one-drop
    labels: {x: time (s), y: outstanding data (bytes)}
    paper: no number stated
"""

# Settings of a client and a server as a run without flows reads them back.
READ_BACK = {
    "nodes": {name: {"sysctls": {}, "offloads_on": []} for name in ("client1", "server")},
    "interfaces": [],
    "flows": [],
    "cpu_pressure_us": None,
    "memory_pressure": 0,
}
CAPTURED = {"capture": {"stream1": {"captured": 0, "dropped": 0, "removed": 0}}}

Bend = Callable[[PlannedRun, Path], None]


def write_study(
    folder: Path, claims: str = CLAIMS, figures: str = FIGURES, repetitions: int | None = None, drawn: bool = False
) -> Path:
    """The study's folder with manifest, claims and figures; of each scenario so many repetitions, which may differ."""
    study = folder / "experiments" / "small"
    study.mkdir(parents=True, exist_ok=True)
    manifest = MANIFEST.replace(EXACT, DRAWN) if drawn else MANIFEST
    if repetitions is not None:
        manifest = manifest.replace("repetitions: 2", f"repetitions: {repetitions}")
        manifest = manifest.replace("[{at: 1500 ms}]", f"[{{at: 1500 ms}}]\n    repetitions: {repetitions}")
    for name, text in (("study", manifest), ("claims", claims), ("figures", figures)):
        (study / f"{name}.yaml").write_text(text, encoding="utf-8")
    return study


def write_results(
    study: Path,
    results: Path,
    bend: Bend | None = None,
    omit: Callable[[PlannedRun], bool] = lambda run: False,
    kernel: KernelSource | None = None,
    backend: FakeBackend | None = None,
) -> None:
    """Lock and records of every run of the study but the omitted; ``bend`` may change a record's files."""
    backend = backend or FakeBackend()
    plan = build_plan(load_study(study / "study.yaml"), profile="paper", pins=backend.pins())
    digest = StudyFolder(study).digest("study.yaml")
    plan = dataclasses.replace(plan, kernels={"none": kernel} if kernel else {}, manifest_sha256=digest)
    write_lock(plan, results / "lock.json")
    for run in plan.runs:
        if omit(run):
            continue
        name = run_folder_name(run.scenario, run.repetition, run.run_id)
        with Bundle(results / "raw", name, run.spec) as bundle:
            backend.run(run.spec, bundle.folder)
            if bend:
                bend(run, bundle.folder)
            bundle.commit(RunFacts(run.run_id, "ok", None, 1, "fake", 0.0, "2000-01-01T00:00:00Z"))


def make_results(
    study: Path,
    results: Path,
    bend: Bend | None = None,
    omit: Callable[[PlannedRun], bool] = lambda run: False,
    kernel: KernelSource | None = None,
    *,
    judged: bool = False,
    reported: bool = False,
) -> OpenedStudy:
    """Fabricate results and build their dataset, and judge or report them; return them opened."""
    folder = StudyFolder(study)
    write_results(study, results, bend, omit, kernel)
    build_dataset(results)
    if judged or reported:
        judge(results, folder.study, folder.claims, folder.judged_by)
    if reported:
        draw_all(results, folder)
        write_report(results, folder)
    return OpenedStudy(results, folder)


def judge_study(results: Path, study: Path) -> list[Verdict]:
    """The verdicts of a study's folder on results, written there too."""
    folder = StudyFolder(study)
    return judge(results, folder.study, folder.claims, folder.judged_by)


def change_json(path: Path, change: Callable[[Any], None]) -> None:
    """Let ``change`` alter the data of a JSON file."""
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")


def bytes_of(folder: Path) -> Mapping[str, bytes]:
    """All files of a folder by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
