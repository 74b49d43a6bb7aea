# SPDX-License-Identifier: Apache-2.0
"""The study of a report card with its candidate: a kernel algorithm, or a copy of the study with a C file or programs.

Owns the text of the copy. Files of the user are checked as in any study (docs/own-algorithm.md).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from longfat.data.study_folder import CLAIMS, MANIFEST, StudyFolder
from longfat.metrics.registry import OWN_METRICS
from longfat.report.card.document import FILE
from longfat.spec.units import Duration, Rate
from longfat.study.catalog.ccas import CCAS
from longfat.study.traffic.own import PROGRAM, faults_of
from longfat.system.errors import StudyError
from longfat.system.files import write_whole
from longfat.system.trust import agree

UNKNOWN = "algorithm"
_UNKNOWNS = re.compile(r"(?ms)^unknowns:\n.*?(?=^\S)")
_CANDIDATE = re.compile(r'\{cca: "\$\{algorithm\}"\}')
QLOG = "send.qlog"


def candidate(folder: StudyFolder, given: str, home: Path) -> tuple[str, StudyFolder]:
    """Return the name of an algorithm, given as a name or C file, and the study with this candidate.

    Raises StudyError for an unknown algorithm or a faulty file.
    """
    if problems := tuple(faults_of(given)):
        raise StudyError("the algorithm cannot be evaluated", problems=problems)
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
