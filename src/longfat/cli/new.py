# SPDX-License-Identifier: Apache-2.0
"""``new``: the folder of a new study."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from longfat.cli.console import Output, say
from longfat.cli.paths import repository_root
from longfat.errors import StudyError
from longfat.studies import CLAIMS, FIGURES, MANIFEST

_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,63}")
_FILES = {
    MANIFEST: """\
# A study: the runs. `./just plan NAME` prints them and their cost, `./just check NAME` names every problem.
# docs/own-study.md explains this file step by step; docs/manifest.md has every key.
format: 2
study: NAME
title: Reno and CUBIC on a path of 100 Mbit/s and 50 ms
# Add `paper` here if the study reproduces a publication.

# Your names for congestion controls of the kernel.
algorithms:
  reno: {cca: reno}
  cubic: {cca: cubic}

# Networks by name. A dumbbell has a switch as its bottleneck, here with a queue of 100 packets. The hosts send faster
# than the bottleneck, so that the queue is at the switch.
paths:
  wan:
    {kind: dumbbell, rate: 100 Mbit/s, host_rate: 1 Gbit/s, rtt: 50 ms, senders: 1, bottleneck_queue: {limit: 100}}

# Settings of every experiment that does not state its own.
defaults:
  # Each repetition starts at a random moment within `start_jitter`: otherwise all would be identical.
  repetitions: 5
  flow: {to: server, duration: 20 s, start_jitter: 100 ms}

# Smaller versions: `quick` is run unless you say `--profile paper`, which is the study as it stands here.
profiles:
  quick: {repetitions: 3}

experiments:
  # One flow alone on the path, once with each algorithm.
  - id: alone
    path: wan
    flows: [{name: flow, from: client1, algorithm: "${algorithm}"}]
    sweep:
      product: {algorithm: [reno, cubic]}
""",
    CLAIMS: """\
# Your hypotheses, written before the first run. docs/claims.md describes the language of `relation`,
# docs/metrics.md every metric. The study also runs without this file.
format: 2
study: NAME
claims:
  - id: cubic-fills-more
    # The figure next to which the report shows it.
    artifact: window
    statement: CUBIC keeps the bottleneck busier than Reno.
    # In percent of the bottleneck's rate; the first seconds, in slow start, do not count.
    relation: utilisation[cubic, since=5 s] > utilisation[reno, since=5 s] in alone
""",
    FIGURES: """\
# Figures; docs/metrics.md describes all kinds. Without this file nothing is drawn.
format: 2
study: NAME
figures:
  # The congestion window over time: a curve for each algorithm, of the first repetition.
  - timeseries: window
    title: congestion window of one flow
    runs: alone
    what: cwnd
    series: algorithm
    # Your expectation, in words and as a dashed line: 100 Mbit/s times 50 ms is 417 packets of 1500 B.
    hypothesis: Below this line the path is not full.
    marks: [{value: 417, label: rate x RTT}]
""",
}


def new(
    out: Output,
    name: Annotated[str, typer.Argument(help="name of the study, and of its folder under experiments/")],
) -> None:
    """Make the folder of a new study, which runs without changes and has comments on what to change."""
    if not _NAME.fullmatch(name):
        hint = "lower-case letters, digits, '_', '-' and '.'; the folder is made under experiments/"
        raise StudyError(f"{name!r} is not a valid name of a study", hint=hint)
    folder = repository_root() / "experiments" / name
    try:
        folder.mkdir(parents=True)
        for file, text in _FILES.items():
            (folder / file).write_text(text.replace("NAME", name), encoding="utf-8")
    except FileExistsError as error:
        raise StudyError(f"there is a study {name!r}", where=str(folder), hint="choose another name") from error
    except OSError as error:
        raise StudyError(f"the study cannot be written: {error.strerror}", where=str(folder)) from error
    say(out, f"{folder}: {', '.join(_FILES)}; change them, then `longfat reproduce {name}`")
    out.result(study=name, folder=str(folder), files=list(_FILES))
