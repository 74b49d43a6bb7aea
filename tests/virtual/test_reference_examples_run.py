# SPDX-License-Identifier: Apache-2.0
"""Every example of the manifest reference is a run that is valid: what it declares was read back.

That of DualPI2 needs linux-7.3: `LONGFAT_TEST_KERNEL=linux-7.3 ./just test tests/virtual` runs it as well.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from guests import KERNEL, virtual
from reference_examples import write_study
from studies import done

from longfat.plan import build_plan
from longfat.study.catalog.kernels import DEFAULT_KERNEL
from longfat.study.load import load_study

pytestmark = pytest.mark.virtual

NEWER = "linux-7.3"


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
