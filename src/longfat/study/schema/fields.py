# SPDX-License-Identifier: Apache-2.0
"""The base of all models of a study's files, and types of keys: quantities with bounds, names, scalars.

Owns the checks that need only the value and the names in its context. Must not read files or other keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    Tag,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError, core_schema

from longfat.spec.units import Duration, Quantity, Rate, Ratio, Size
from longfat.study.schema.names import shown, unknown
from longfat.system.errors import StudyError


class Closed(BaseModel):
    """An immutable mapping without unknown keys; ``examples`` are shown in the reference."""

    examples: ClassVar[tuple[str, ...]] = ()

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


REFERENCE = re.compile(r"\$\{([^{}]*)\}")
WAITING = "waiting"
_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,63}")
_FACTOR = re.compile(r"[a-z][a-z0-9_]{0,31}")


def is_name(text: str) -> bool:
    """Return whether a text may be a name."""
    return _NAME.fullmatch(text) is not None


def fault(message: str, hint: str | None = None) -> PydanticCustomError:
    """Return a pydantic error with a message and a hint."""
    return PydanticCustomError("fault", "{message}", {"message": message, "hint": hint})


@dataclass(frozen=True)
class Within:
    """Annotation of a quantity: its bounds, both included, as a user writes them."""

    least: str
    most: str | None = None

    def __get_pydantic_core_schema__(
        self, source: type[Quantity], _handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        bounds = source.parse(self.least), source.parse(self.most) if self.most else None
        return core_schema.no_info_plain_validator_function(
            lambda given: self._read(source, given, *bounds), metadata={"units": [*source.units]}
        )

    def __get_pydantic_json_schema__(self, schema: Any, _handler: Any) -> dict[str, Any]:
        bounds = f"from {self.least} to {self.most}" if self.most else f"{self.least} or more"
        units = "|".join(schema["metadata"]["units"])
        pattern = rf"^\s*\+?[0-9]{{1,15}}(\.[0-9]{{1,15}})?\s*({units})\s*$"
        return {"type": "string", "description": bounds, "pattern": pattern}

    def _read(self, kind: type[Quantity], given: object, least: Quantity, most: Quantity | None) -> Quantity:
        if not isinstance(given, str):
            number = isinstance(given, int | float) and not isinstance(given, bool)
            text = (
                f"{given} has no unit; {kind.dimension} needs one"
                if number
                else f"{shown(given)} is not {kind.dimension}"
            )
            example = f'write a number and a unit, such as "{kind.example}"; units: {", ".join(kind.units)}'
            raise fault(text, example)
        try:
            quantity = kind.parse(given)
        except StudyError as error:
            raise fault(error.message, error.hint) from error
        if quantity < least or (most is not None and quantity > most):
            raise fault(f"{shown(given)} is out of range; allowed: {self._range()}")
        return quantity

    def _range(self) -> str:
        return f"{self.least} to {self.most}" if self.most else f"{self.least} or more"


@dataclass(frozen=True, eq=False)
class Check:
    """Annotation of a text: a check, and the equivalent keys of JSON Schema."""

    function: Callable[[str], str]
    keys: Mapping[str, Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self.function, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {**handler(schema), **self.keys}


def matching(pattern: re.Pattern[str], what: str) -> Check:
    """Return the annotation of a text that matches ``pattern``; ``what`` describes it in messages."""

    def check(given: str) -> str:
        if not pattern.fullmatch(given):
            raise fault(f"{shown(given)} is not {what}")
        return given

    # JSON Schema's patterns have no flags; a text needs one character that is not a space.
    return Check(check, {"pattern": r"\S" if pattern.pattern.startswith("(?") else f"^{pattern.pattern}$"})


def among(what: str, allowed: Collection[str]) -> Check:
    """Return the annotation of a text that must be in ``allowed``; ``what`` is the noun in messages."""

    def check(given: str) -> str:
        if given not in allowed:
            raise fault(*unknown(what, given, allowed))
        return given

    return Check(check, {"enum": [*allowed]})


def surrounding(what: str, known: Collection[str] | None = None) -> AfterValidator:
    """Return the annotation of a name that must be in the context's list ``what``, or else in ``known``."""

    def check(given: str, info: ValidationInfo) -> str:
        allowed = (info.context or {}).get(what, known)
        if allowed is not None and given not in allowed:
            raise fault(*unknown(what, given, allowed))
        return given

    return AfterValidator(check)


def by_kind(kinds: Mapping[str, type[BaseModel]], *, default: str | None = None) -> Any:
    """Return the type of a mapping whose key ``kind`` selects the model; without the key, the ``default`` kind.

    A model of the kind ``WAITING`` takes a mapping whose kind is a reference.
    """

    def tag(given: Any) -> str:
        kind = given.get("kind", default) if isinstance(given, dict) else getattr(given, "kind", None)
        waits = WAITING in kinds and isinstance(kind, str) and REFERENCE.fullmatch(kind)
        return f"<{WAITING if waits else kind}>"

    tagged = (Annotated[model, Tag(f"<{kind}>")] for kind, model in kinds.items())
    return Annotated[reduce(or_, tagged), Discriminator(tag)]


def _scalar(given: object) -> object:
    if not isinstance(given, bool | int | float | str):
        raise fault(f"{shown(given)} is not a single value; a factor takes numbers, texts, true or false")
    return given


def _number(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise fault(f"{shown(given)} is not a number")
    return float(given)


def _percent(given: object) -> float:
    number = _number(given)
    if not 0 <= number < 100:
        raise fault(f"{given} is out of range; allowed: 0 to less than 100 percent")
    return number


def _parameter(given: object) -> float | str:
    return given if isinstance(given, str) else _number(given)


Delay = Annotated[Duration, Within("0 us", "3600 s")]
Start = Annotated[Duration, Within("0 us", "3600 s")]
Length = Annotated[Duration, Within("1 us", "3600 s")]
HostTime = Annotated[Duration, Within("0 us", "10 ms")]
Interval = Annotated[Duration, Within("100 us", "3600 s")]
# Far more than the 100 ppm of IEEE 802.3.
ClockTolerance = Annotated[Ratio, Within("0 ppm", "10000 ppm")]
OffTimes = Annotated[Ratio, Within("1 %", "1000 %")]
# With the largest clock tolerance, 10000 ppm, it is still within the kernel's 1 Tbit/s.
FASTEST = Rate.parse("990 Gbit/s")
LinkRate = Annotated[Rate, Within("1 bit/s", str(FASTEST))]
# Half of the maximum of setsockopt(SO_RCVBUF): the kernel doubles the given value, in an int.
Window = Annotated[Size, Within("1 B", "1073741823 B")]
Memory = Annotated[Size, Within("256 MiB", "16 GiB")]
# iperf2 turns less than its header into a whole block of 1 MiB.
Transfer = Annotated[Size, Within("100 B", "1024 GiB")]
# RFC 791 requires every host to accept 576 bytes; 9216 is the largest jumbo frame of common switches.
Mtu = Annotated[Size, Within("576 B", "9216 B")]
# More than 0; the kernel keeps RED's probability as a fraction of 2^32.
Share = Annotated[Ratio, Within("1 ppm", "100 %")]
Switch = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
MOST_FLOWS = 10_000  # flows of one entry: their ports are below those that Linux assigns by itself
FlowCount = Annotated[int, Field(strict=True, ge=1, le=MOST_FLOWS)]
CountFromZero = Annotated[int, Field(strict=True, ge=0, le=1_000_000)]
Seed = Annotated[int, Field(strict=True, ge=0, le=2**53 - 1)]
Number = Annotated[float, BeforeValidator(_number)]
Percent = Annotated[
    float, BeforeValidator(_percent), WithJsonSchema({"type": "number", "minimum": 0, "exclusiveMaximum": 100})
]
# A number or a word, according to the parameter in the catalogue.
ParameterValue = Annotated[float | str, BeforeValidator(_parameter)]

Name = Annotated[str, matching(_NAME, "a name; allowed: lower-case letters, digits, '_', '-' and '.'")]
ExperimentId = Annotated[
    str, matching(re.compile(r"[a-z0-9_][a-z0-9_-]{0,63}"), "an id; allowed: a-z, 0-9, '_' and '-'")
]
FactorName = Annotated[str, matching(_FACTOR, "a factor name; allowed: a letter, then a-z, 0-9 and '_'")]
Text = Annotated[str, matching(re.compile(r"(?s).*\S.*"), "a text; it is empty")]
FactorValue = Annotated[bool | int | float | str, BeforeValidator(_scalar)]

NodeName = Annotated[str, surrounding("node")]
TrafficName = Annotated[str, surrounding("traffic")]
AlgorithmName = Annotated[str, surrounding("algorithm")]
