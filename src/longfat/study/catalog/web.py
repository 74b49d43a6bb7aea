# SPDX-License-Identifier: Apache-2.0
"""Models of web users that a manifest may name. Plain data: the guest implements the models.

Source: Barford, Crovella, SIGMETRICS 1998 (SURGE). The plan estimates run times from these rates; a test compares the
rates with the models.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WebModel:
    """A model: a user's demand in bytes and requests per second if transfers took no time."""

    name: str
    summary: str
    bytes_per_s: float
    requests_per_s: float


_SOURCE = "SURGE (Barford, Crovella, SIGMETRICS 1998): 2000 files, sizes lognormal up to 133 kB and Pareto beyond; "
_SOURCE += "pages with embedded files, times between requests Weibull within a page and Pareto after it; "

WEB_MODELS: dict[str, WebModel] = {
    model.name: model
    for model in (
        WebModel(
            "surge",
            _SOURCE + "popularity by Zipf's law, so that the sizes of requests are Pareto from 1000 bytes as published",
            2_670.0,
            0.224,
        ),
        WebModel(
            "surge_files",
            _SOURCE + "all files equally popular, so that requests have the sizes of files",
            14_900.0,
            0.224,
        ),
    )
}
