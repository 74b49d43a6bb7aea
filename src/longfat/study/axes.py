# SPDX-License-Identifier: Apache-2.0
"""The models of a sweep: its factors, their values, derived values and exclusions.

``longfat.study.sweep`` expands them.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Discriminator, Field, Tag

from longfat.study.schema import fields as f
from longfat.study.schema.closed import Closed


class Exclusion(Closed):
    """Points of a sweep that are left out, with the reason."""

    when: dict[f.FactorName, f.FactorValue] = Field(min_length=1, description="factor values that must all match")
    reason: f.Text = Field(description="the reason, for the report")


class Record(Closed):
    """A factor's value that is an inline record; the factor's value is its name."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any]

    name: f.Text = Field(description="value of the factor at this level")

    @property
    def fields(self) -> dict[str, Any]:
        """All fields except the name."""
        return dict(self.__pydantic_extra__)


Level = Annotated[
    Annotated[Record, Tag("<record>")] | Annotated[f.FactorValue, Tag("<value>")],
    Discriminator(lambda given: "<record>" if isinstance(given, dict | Record) else "<value>"),
]
Factors = dict[f.FactorName, tuple[Level, ...]]


class Sweep(Closed):
    """The points at which an experiment is run: the product of all lists, and of the rows of each zip."""

    product: Factors = Field(default={}, description="every combination")
    zipped: Annotated[
        Annotated[Factors, Tag("<one>")] | Annotated[tuple[Factors, ...], Tag("<several>")],
        Discriminator(lambda given: "<several>" if isinstance(given, list | tuple) else "<one>"),
    ] = Field(
        default={},
        alias="zip",
        description="lists of equal length, read in parallel, or a list of such mappings, each a separate axis; a "
        "list that nothing refers to names the rows",
    )
    derived: dict[f.FactorName, f.Text] = Field(
        default={}, description="values that follow from the factors and the path, each by its formula"
    )
    exclude: tuple[Exclusion, ...] = Field(default=(), description="points left out")

    @property
    def zips(self) -> list[tuple[tuple[str | int, ...], Factors]]:
        """Each zip with its path."""
        if isinstance(self.zipped, dict):
            return [(("zip",), self.zipped)] if self.zipped else []
        return [(("zip", index), factors) for index, factors in enumerate(self.zipped)]

    @property
    def groups(self) -> list[tuple[tuple[str | int, ...], Factors]]:
        """The product and each zip, with their paths."""
        return [(("product",), self.product), *self.zips]
