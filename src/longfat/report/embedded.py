# SPDX-License-Identifier: Apache-2.0
"""The report's explorer in a notebook: the runs of one experiment, in a frame that needs nothing else."""

from __future__ import annotations

import dataclasses
import html
from dataclasses import dataclass

from longfat.data.opened import OpenedStudy
from longfat.errors import StudyError
from longfat.report.explorer import explorer_data
from longfat.report.page import render
from longfat.schema.names import unknown

HEIGHT = 900  # of the frame, in pixels


@dataclass(frozen=True)
class Explorer:
    """The explorer of an experiment, which a notebook shows."""

    study: OpenedStudy
    experiment: str

    def __repr__(self) -> str:
        return f"explorer of {self.experiment}"

    def _repr_html_(self) -> str:
        plan = self.study.plan
        runs = tuple(run for run in plan.runs if run.experiment == self.experiment)
        data = explorer_data(dataclasses.replace(plan, runs=runs), self.study.dataset, {})
        page = render("explorer.html.j2", study=plan.study, experiment=self.experiment, data=data)
        title = html.escape(repr(self))
        return f'<iframe title="{title}" width="100%" height="{HEIGHT}" srcdoc="{html.escape(page)}"></iframe>'


def explorer(study: OpenedStudy, experiment: str) -> Explorer:
    """The explorer of an experiment's runs. Raises StudyError unless the results have some."""
    known = list(dict.fromkeys(run.experiment for run in study.plan.runs))
    if experiment not in known:
        message, hint = unknown("experiment", experiment, known)
        raise StudyError(message, hint=hint)
    return Explorer(study, experiment)
