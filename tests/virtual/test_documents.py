# SPDX-License-Identifier: Apache-2.0
"""Tutorials and how-tos do and print what they say; each example of the manifest reference is a valid run.

That of DualPI2 needs linux-7.3: `LONGFAT_TEST_KERNEL=linux-7.3 ./just test tests/virtual` runs it as well.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from console import LONGEST, ROOT, differences, executed
from guests import KERNEL, virtual
from reference_examples import write_study
from studies import done

from longfat.plan import build_plan
from longfat.study.catalog.kernels import DEFAULT_KERNEL
from longfat.study.load import load_study

pytestmark = pytest.mark.virtual

NEWER = "linux-7.3"
PAGES = [page for page in sorted(ROOT.glob("docs/*.md")) if executed(page) and page not in LONGEST]  # `./just follow`


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_does_what_it_says_and_prints_what_it_shows(page: Path, tmp_path: Path) -> None:
    assert differences(page, tmp_path) == []


def test_every_example_of_the_reference_is_a_valid_run(tmp_path: Path) -> None:
    pins = virtual().pins()
    kernels = {DEFAULT_KERNEL: pins["kernel"], NEWER: pins["kernel"] if KERNEL == NEWER else "not here"}
    runs = build_plan(load_study(write_study(tmp_path)), profile="quick", pins=pins, kernels=kernels).runs
    here = {run.experiment: run.spec for run in runs if run.spec.pins == pins}
    assert len(here) >= 30
    absent = {run.experiment for run in runs} - set(here)
    assert absent == (set() if KERNEL == NEWER else {"topology-bottleneck-queue-dualpi2-0"})
    for name, spec in here.items():
        assert virtual().refuses(spec) == (), name
        done(spec, tmp_path / name)
