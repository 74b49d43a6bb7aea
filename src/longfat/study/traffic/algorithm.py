# SPDX-License-Identifier: Apache-2.0
"""A congestion control in a manifest: named in `algorithms`, or defined where it is used."""

from __future__ import annotations

from typing import Annotated

from pydantic import (
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from longfat.study.catalog.ccas import CCAS, Cca, Value, plain
from longfat.study.catalog.kernels import Piece
from longfat.study.schema import fields as f
from longfat.study.schema.names import nearest, shown, unknown
from longfat.study.traffic.own import OwnAlgorithm, own_algorithm


def _read(given: object, info: ValidationInfo) -> OwnAlgorithm:
    if not isinstance(given, str) or not given.strip():
        raise f.fault(f"{shown(given)} is not the name of a file")
    return own_algorithm((info.context or {})["folder"], given)


OwnSource = Annotated[OwnAlgorithm, PlainValidator(_read), WithJsonSchema({"type": "string", "pattern": r"\S"})]


class Algorithm(f.Closed):
    """A congestion control of the kernel or of the study, with its parameters by the catalogue's names."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, f.ParameterValue]

    named: Annotated[str, f.among("congestion control", CCAS)] | None = Field(
        default=None, alias="cca", description="the kernel's name of the congestion control; this or `source`"
    )
    source: OwnSource | None = Field(
        default=None,
        description="a C file in the study's folder, `tcp_NAME.c`, whose congestion control NAME becomes part of the "
        "kernel ([own-algorithm.md](own-algorithm.md))",
    )

    @property
    def definition(self) -> Cca:
        """Its entry in the catalogue, or its description in its C file."""
        return self.source.cca if self.source else CCAS[self.named or ""]

    @property
    def cca(self) -> str:
        """Its name in the kernel."""
        return self.definition.name

    @property
    def file(self) -> Piece | None:
        """Its C file, if it belongs to the study."""
        return self.source.file if self.source else None

    @property
    def given(self) -> dict[str, Value]:
        """All its keys as a manifest has them."""
        return {**({"source": self.source.file.name} if self.source else {"cca": self.cca}), **self.parameters}

    @property
    def parameters(self) -> dict[str, Value]:
        """The parameters given, by name."""
        return dict(self.__pydantic_extra__)

    @property
    def sysctls(self) -> dict[str, str]:
        """The sysctls of all its parameters, given or not."""
        return self.definition.sysctls(self.parameters)

    @model_validator(mode="after")
    def _check_together(self) -> Algorithm:
        found: dict[str, PydanticCustomError | None] = {}
        if (self.named is None) == (self.source is None):
            missing = "is required here but missing" if self.named is None else "and `source` exclude each other"
            found["cca"] = f.fault(missing, "give `cca`, a congestion control of the kernel, or `source`, a C file")
        else:
            found = {name: _parameter_fault(self.definition, name, value) for name, value in self.parameters.items()}
        faults = [
            InitErrorDetails(type=fault, loc=(name,), input=self.parameters.get(name))
            for name, fault in found.items()
            if fault
        ]
        if faults:
            raise ValidationError.from_exception_data("Algorithm", faults)
        return self


def _parameter_fault(cca: Cca, name: str, value: Value) -> PydanticCustomError | None:
    """Return the fault of a parameter of a congestion control, or None."""
    parameters = cca.allowed
    if name not in parameters:
        return f.fault(*unknown(f"parameter of {cca.name}", name, parameters))
    parameter, given = parameters[name], shown(value) if isinstance(value, str) else plain(value)
    allowed = f"allowed: {parameter.range_text}"
    if parameter.words:
        if value in parameter.words:
            return None
        return f.fault(f"{given} is not allowed; {allowed}", nearest(value, parameter.words))
    if isinstance(value, str):
        return f.fault(f"{given} is not a number; {allowed}")
    scaled = parameter.scaled(value)
    if not parameter.minimum <= scaled <= parameter.maximum:
        return f.fault(f"{given} is out of range; {allowed}")
    if scaled != int(scaled):
        multiple = f"a multiple of 1/{parameter.per_unit}" if parameter.per_unit > 1 else "a whole number"
        return f.fault(f"{given} is not {multiple}; values are never rounded")
    return None


AlgorithmUsed = Annotated[
    Annotated[f.AlgorithmName, Tag("<name>")] | Annotated[Algorithm, Tag("<inline>")],
    Discriminator(lambda given: "<inline>" if isinstance(given, dict) else "<name>"),
]
"""The algorithm of an entry of traffic: a name in `algorithms`, or a definition."""
