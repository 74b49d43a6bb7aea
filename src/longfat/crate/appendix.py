# SPDX-License-Identifier: Apache-2.0
"""The artifact appendix of a package: what it claims, and how each claim is checked, with time and disk.

Owns its words. It follows the checklist of ACM's badges (Artifact Review and Badging, version 1.1).
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from longfat.crate.facts import Cost, Facts, Tested
from longfat.manifest.models import Header
from longfat.relations.claims import claim_nouns
from longfat.relations.counting import tally

_SET_UP_MB = 2500  # environment, kernel, image and their sources


def appendix(header: Header, facts: Facts, tested: Sequence[Tested], contents: Sequence[tuple[str, str]]) -> str:
    """ARTIFACT.md; ``contents`` are the places in the package with what each is."""
    study, total = header.study, facts.cost()
    counts = tally(one.verdict.counted for one in tested)["measured"]
    summary = ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in counts.items() if count)
    noun = claim_nouns(header)[1]
    return f"""\
# Artifact appendix: {study}

## Abstract
{header.title}. This package has the results of the study, and all that is needed to make them again:
{facts.runs} of real Linux TCP, profile {facts.plan.profile}, stack {facts.plan.stack}.
Of its measured {noun}: {summary or "none was judged"}.

## Checklist
| | |
|---|---|
| Program | Longfat, in `software/`; Linux with the patches in `kernels/` |
| Compilation | GCC of the Debian packages that `./just` installs; the kernel takes 2 to 5 minutes |
| Data set | none from outside; traffic is generated |
| Hardware | any x86-64 machine with 2 cores and 4 GB; neither KVM nor root after set-up |
| Software | Debian 12 or newer, Python 3.11 or newer |
| Disk | {_disk(total.size)} for the runs, {_disk(_SET_UP_MB * 10**6)} for the set-up |
| Time | set-up 10 min; all runs {_minutes(total)} of one core; the two cores of a laptop take half |
| Output | `report.html`, `verdicts.json`, figures, dataset |
| Expected result | the same bytes: runs are deterministic, and `./just reproduce` compares them |
| Licence | Apache-2.0, kernel patches GPL-2.0-only |

## What is in the package
| place | content |
|---|---|
{_rows(contents)}

## Set-up
```console
$ tar --extract --file software/longfat.tar.gz && cd longfat
$ ./just reproduce _smoke  # 1 minute after the set-up: the whole chain on a small study
```

## The experiments
The first command reproduces everything. It prints the verdicts by the evidence in the repository
before the first run, and compares each run with it to the byte.

```console
$ ./just reproduce {study} --profile {facts.plan.profile} --stack {facts.plan.stack}
$ ./just reproduce {study} --sample 20     # or: 20 runs drawn by a seed, compared to the byte
```

Each claim alone: `./just reproduce {study} --only` with the experiments in its row. Minutes are of one
core, disk is that of the runs. {_missing(facts)}

| claim | says | verdict | runs | minutes | disk | `--only` |
|---|---|---|---|---|---|---|
{_claims(tested)}

## ACM badges
- **Artifacts available**: the package is one file with a licence and citation; the archive gives it a
  DOI (`.zenodo.json`).
- **Artifacts evaluated, functional**: documented (this file, `report.html`, the documentation in
  `software/`), consistent (each figure and claim above names its runs), complete (source, patches,
  settings of every run in `results/lock.json`, data), exercisable (the commands above).
- **Artifacts evaluated, reusable**: `datapackage.json` describes every column; another study is a
  file (`docs/study-tutorial.md` in `software/`).
- **Results reproduced**: run the first command. Its last lines state how many runs are identical to
  the byte, and whether dataset and verdicts equal the reference.
"""


def _rows(contents: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"| `{place}` | {what} |" for place, what in contents)


def _claims(tested: Sequence[Tested]) -> str:
    return "\n".join(_claim(one) for one in tested) or "| none | | | | | | |"


def _claim(one: Tested) -> str:
    says = " ".join(html.escape(one.verdict.statement, quote=False).replace("|", "\\|").split())
    head = f"| `{one.claim.id}` | {says} | {one.verdict.verdict.replace('_', ' ')} |"
    if not one.experiments:
        return f"{head} 0 | 0 | 0 | no run: `./just verdicts` |"
    cost = one.cost
    return f"{head} {cost.runs} | {cost.seconds / 60:.1f} | {_disk(cost.size)} | `{','.join(one.experiments)}` |"


def _missing(facts: Facts) -> str:
    known = {run.run_id for run in facts.plan.runs} & facts.seconds.keys()
    if len(known) == len({run.run_id for run in facts.plan.runs}):
        return "Times were measured."
    return f"Times of {len(known)} runs were measured, all others come from the plan's model."


def _minutes(cost: Cost) -> str:
    return f"{math.ceil(cost.seconds / 60)} min"


def _disk(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{math.ceil(size / 1e6)} MB"
