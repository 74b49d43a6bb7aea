# SPDX-License-Identifier: Apache-2.0
"""A congestion control as a manifest has it: named in `algorithms`, or spelt out where it is used."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from longfat.catalog.ccas import Value, allowed_parameters, plain
from longfat.manifest import fields as f
from longfat.manifest.closed import Closed
from longfat.manifest.names import nearest, shown, unknown


class Algorithm(Closed):
    """A congestion control of the kernel, with its parameters by the catalogue's names."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, f.ParameterValue]

    cca: f.CcaName = Field(description="the kernel's name of the congestion control")

    @property
    def parameters(self) -> dict[str, Value]:
        """The parameters given, by name."""
        return dict(self.__pydantic_extra__)

    @model_validator(mode="after")
    def _check_parameters(self) -> Algorithm:
        faults = []
        for name, value in self.parameters.items():
            fault = _parameter_fault(self.cca, name, value)
            if fault:
                faults.append(InitErrorDetails(type=fault, loc=(name,), input=value))
        if faults:
            raise ValidationError.from_exception_data("Algorithm", faults)
        return self


def _parameter_fault(cca: str, name: str, value: Value) -> Any:
    """What is wrong with a parameter of a congestion control, or None."""
    parameters = allowed_parameters(cca)
    if name not in parameters:
        return f.fault(*unknown(f"parameter of {cca}", name, parameters))
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
"""Of an entry of traffic: the name that `algorithms` has, or an algorithm of its own."""
