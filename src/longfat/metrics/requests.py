# SPDX-License-Identifier: Apache-2.0
"""Metrics of requests: response times."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from longfat.dataset.load import Columns
from longfat.metrics.data import Array, NoValue, columns_of
from longfat.metrics.registry import metric

Responses = Annotated[Columns, columns_of("responses")]

LATE_PERCENT = 99


def times_ms(responses: Responses, above_bytes: float, up_to_bytes: float) -> Array:
    """Return the response times for sizes in a range, in milliseconds. Raises NoValue if there is none."""
    sizes, times_us = (responses[name].astype(np.float64) for name in ("response_bytes", "response_us"))
    found: Array = times_us[(sizes > above_bytes) & (sizes <= up_to_bytes)] / 1000
    if not len(found):
        raise NoValue("the run has no response of such a size")
    return found


@metric("ms", "mean response time", bounds=(0, np.inf))
def response_time(responses: Responses, above_bytes: float = 0.0, up_to_bytes: float = np.inf) -> float:
    """Mean time from the start of a request's connection to the last byte of its response, in milliseconds.

    With `above` and `up_to`, only responses of these sizes count.
    """
    return float(times_ms(responses, above_bytes, up_to_bytes).mean())


@metric("ms", "99th-percentile response time", bounds=(0, np.inf))
def late_response_time(responses: Responses, above_bytes: float = 0.0, up_to_bytes: float = np.inf) -> float:
    """99th percentile of the response times whose mean is `response_time`, in milliseconds."""
    return float(np.percentile(times_ms(responses, above_bytes, up_to_bytes), LATE_PERCENT))
