# SPDX-License-Identifier: Apache-2.0
"""``new``: the folder of a study of one's own, which runs as it is and says in comments what to change."""

from __future__ import annotations

import re

from rich.console import Console

from longfat.errors import StudyError
from longfat.studies import CLAIMS, FIGURES, MANIFEST
from longfat.verbs.places import repository_root
from longfat.verbs.say import print_json, say

_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,63}")
FORMAT = 1
_FILES = {
    MANIFEST: """\
# A study: what is run. `./just plan NAME` shows what it comes to, `./just check NAME` what is wrong with it.
# docs/study-tutorial.md goes through this file; docs/manifest.md has every key.
format: 2
study: NAME
title: Reno and CUBIC on a path of 100 Mbit/s and 50 ms
# Give `paper` here if the study reproduces a publication; without it the study is your own.

# Names of your own for congestion controls of the kernel.
algorithms:
  reno: {cca: reno}
  cubic: {cca: cubic}

# Networks by name. A dumbbell has a switch as its bottleneck, here with a queue of 100 packets. The hosts send faster
# than the bottleneck, so that the queue is at the switch.
paths:
  wan:
    {kind: dumbbell, rate: 100 Mbit/s, host_rate: 1 Gbit/s, rtt: 50 ms, senders: 1, bottleneck_queue: {limit: 100}}

# What every experiment has unless it gives its own.
defaults:
  # Each repetition starts at another moment within `start_jitter`: else all would be the same.
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
# What you expect, written before the first run. docs/relations.md has the language of `relation`,
# docs/metrics.md all that may be measured. Without this file the study is run and drawn all the same.
format: 2
study: NAME
claims:
  - id: cubic-fills-more
    # The figure that it stands beside in the report.
    artifact: window
    statement: CUBIC keeps the bottleneck busier than Reno.
    # In percent of the bottleneck's rate; the first seconds, in slow start, do not count.
    relation: utilisation[cubic, since=5 s] > utilisation[reno, since=5 s] in alone
""",
    FIGURES: """\
# What is drawn; docs/figures.md has all kinds. Without this file nothing is.
format: 2
study: NAME
figures:
  # The congestion window over time: a curve for each algorithm, of the first repetition.
  - timeseries: window
    title: congestion window of one flow
    runs: alone
    what: cwnd
    series: algorithm
    # What you expect of it: in words, and as a dashed line. 100 Mbit/s times 50 ms is 417 packets of 1500 B.
    hypothesis: Below this line the path is not full.
    marks: [{value: 417, label: rate x RTT}]
""",
}


def new(name: str, console: Console, *, as_json: bool = False) -> None:
    """Make ``experiments/NAME`` with a study, a hypothesis and a figure.

    Raises StudyError when the name is none, or taken.
    """
    if not _NAME.fullmatch(name):
        hint = "lower-case letters, digits, '_', '-' and '.'; the folder is made under experiments/"
        raise StudyError(f"{name!r} is not a name of a study", hint=hint)
    folder = repository_root() / "experiments" / name
    try:
        folder.mkdir(parents=True)
        for file, text in _FILES.items():
            (folder / file).write_text(text.replace("NAME", name), encoding="utf-8")
    except FileExistsError as error:
        raise StudyError(f"there is a study {name!r}", where=str(folder), hint="choose another name") from error
    except OSError as error:
        raise StudyError(f"the study cannot be written: {error.strerror}", where=str(folder)) from error
    files = ", ".join(_FILES)
    say(console, f"{folder}: {files}; change them, then `longfat reproduce {name}`")
    if as_json:
        print_json({"format": FORMAT, "study": name, "folder": str(folder), "files": list(_FILES)})
