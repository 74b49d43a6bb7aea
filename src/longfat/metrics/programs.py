# SPDX-License-Identifier: Apache-2.0
"""The metric of a study's own programs."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from longfat.dataset.load import Columns
from longfat.metrics.data import NoValue, columns_of, union_us
from longfat.metrics.registry import metric

Programs = Annotated[Columns, columns_of("programs")]


@metric("Mb/s", "goodput of programs on the wire", bounds=(0, np.inf))
def program_goodput(programs: Programs) -> float:
    """Bytes that UDP or TCP carried from a study's programs to the receivers' interfaces, over their time, in Mb/s.

    Of all programs of a run, over the union of their times. Retransmissions count as they arrive: the wire tells no
    difference.
    """
    if not len(programs["end_us"]):
        raise NoValue("the run has no program")
    lasted_us = union_us(zip(programs["start_us"].tolist(), programs["end_us"].tolist(), strict=True))
    return float(8 * programs["payload_bytes"].astype(np.float64).sum() / lasted_us)
