# SPDX-License-Identifier: Apache-2.0
"""The registry of metrics: one decorated function is one metric.

A metric's signature lists its inputs. An argument annotated with a source (``longfat.metrics.data``) is read from the
run; ``flow`` is the flow that a claim names. Every other argument is a parameter with its unit as a suffix: a claim
writes ``since_us`` as ``since``, a length of time, and ``above_segments`` as ``above``, a number.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import math
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar, get_args, get_type_hints

from longfat.metrics.data import NoValue, OutOfBounds, Outstanding, Pings, Point, Points, RunData, Source
from longfat.metrics.statistics import UNBOUNDED
from longfat.system.errors import Problem, StudyError
from longfat.system.files import read_plain
from longfat.system.trust import require_trust

Dimension = Literal["time", "size", "rate", "number"]
JudgedBy = Literal["mean", "median"]
Function = TypeVar("Function", bound=Callable[..., float | Points])

_SUFFIXES: Mapping[str, Dimension] = {"_us": "time", "_bytes": "size", "_bps": "rate", "_segments": "number"}
BOUND_SLACK = 0.005
"""Share of a bound by which a value may exceed it: sampling is inexact by a frame at the ends of a window."""
_PROBED = {"ping": get_args(Pings)[1], "capture": get_args(Outstanding)[1]}
OWN_METRICS = "metrics.py"
MOST_BYTES = 1_000_000  # of a file that is written by hand
_DIGEST = "LONGFAT_SHA256"  # attribute of a loaded module


@dataclass(frozen=True)
class Parameter:
    """A metric's parameter: its name in claims, its dimension, and its name in the function."""

    name: str
    dimension: Dimension
    required: bool
    argument: str


@dataclass(frozen=True)
class Metric:
    """A registered metric.

    ``bounds`` are its smallest and largest possible values. ``judged_by`` is the statistic that is compared with
    limits: the mean, or the median if runs fall into two modes. ``flow`` states whether a claim may name a flow,
    ``must_name_flow`` whether it must. A metric ``over`` variables has several points in a run; a formula that it is
    compared with may use these variables.
    """

    name: str
    unit: str
    meaning: str
    bounds: tuple[float, float]
    judged_by: JudgedBy
    source: str
    definition: str
    parameters: Mapping[str, Parameter]
    flow: bool
    must_name_flow: bool
    over: tuple[str, ...]
    function: Callable[..., float | Points]
    _sources: Mapping[str, Source]
    _takes_flow: bool

    @property
    def shipped(self) -> bool:
        """Whether it is part of this package instead of a study."""
        return self.function.__module__.startswith(__package__)

    @property
    def probes(self) -> tuple[str, ...]:
        """The probes without which a run has no value."""
        return tuple(name for name, source in _PROBED.items() if source in self._sources.values())

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the parameters that a claim must give, including the flow."""
        given = tuple(name for name, parameter in self.parameters.items() if parameter.required)
        return (*given, "flow") if self.must_name_flow else given

    def of(self, data: RunData, flow: str | None, parameters: Mapping[str, float]) -> float:
        """Return the metric of one run in its unit, from parameters in base units.

        Raises NoValue with the reason, OutOfBounds for a value outside the metric's bounds.
        """
        value = self._computed(data, flow, parameters)
        assert not isinstance(value, Sequence), "a metric with points has no single value"
        return self.bounded(float(value))

    def bounded(self, value: float) -> float:
        """Clip a value that exceeds the bounds by no more than the slack.

        Raises OutOfBounds for any other, NoValue for one that is not a number or infinite.
        """
        low, high = self.bounds
        if not math.isnan(value) and not low - BOUND_SLACK * abs(low) <= value <= high + BOUND_SLACK * abs(high):
            unit = f" {self.unit}" if self.unit else ""
            raise OutOfBounds(f"{self.name} is {value:.6g}{unit}, outside its bounds {low:g} to {high:g}{unit}")
        if not math.isfinite(value):
            raise NoValue(f"the value is {value}")
        return min(max(value, low), high)

    def points(self, data: RunData, flow: str | None, parameters: Mapping[str, float]) -> tuple[Point, ...]:
        """Return the points of one run. Raises NoValue with the reason."""
        value = self._computed(data, flow, parameters)
        assert isinstance(value, Sequence), "a metric with a single value has no points"
        return tuple(value)

    def _computed(self, data: RunData, flow: str | None, parameters: Mapping[str, float]) -> float | Points:
        given: dict[str, object] = {name: source.read(data, flow) for name, source in self._sources.items()}
        given |= {self.parameters[name].argument: value for name, value in parameters.items()}
        try:
            return self.function(**given, **({"flow": flow} if self._takes_flow else {}))
        except (NoValue, OutOfBounds):
            raise
        except Exception as error:
            if self.function.__module__.startswith("longfat."):
                raise
            line = traceback.extract_tb(error.__traceback__)[-1]
            message = f"metric {self.name!r} fails in run {data.run.run_id}: {type(error).__name__}: {error}"
            raise StudyError(message, where=f"{line.filename}:{line.lineno}") from error


METRICS: dict[str, Metric] = {}


def metric(
    unit: str,
    meaning: str,
    *,
    bounds: tuple[float, float] = UNBOUNDED,
    judged_by: JudgedBy = "mean",
    name: str | None = None,
    source: str = "",
    over: tuple[str, ...] = (),
) -> Callable[[Function], Function]:
    """Register a function as a metric. ``source`` names the publication that defines it, if any.

    ``Metric`` explains ``bounds`` and ``judged_by``. A function that returns ``Points`` lists the variables of a
    point in ``over``. Raises TypeError if an argument has no known suffix, or the name is taken.
    """

    def register(function: Function) -> Function:
        own = name or function.__name__
        if own in METRICS:
            raise TypeError(f"there is a metric {own!r} already")
        sources, parameters, flow = _arguments(own, function)
        METRICS[own] = Metric(
            name=own,
            unit=unit,
            meaning=meaning,
            bounds=bounds,
            judged_by=judged_by,
            source=source,
            definition=inspect.getdoc(function) or "",
            parameters=parameters,
            flow=flow is not None or any(read.by_flow for read in sources.values()),
            must_name_flow=flow is not None and flow.default is inspect.Parameter.empty,
            over=over,
            function=function,
            _sources=sources,
            _takes_flow=flow is not None,
        )
        return function

    return register


def _arguments(
    name: str, function: Function
) -> tuple[dict[str, Source], dict[str, Parameter], inspect.Parameter | None]:
    """Return a function's sources, its parameters, and its argument ``flow`` if it has one."""
    hints = get_type_hints(function, include_extras=True)
    sources: dict[str, Source] = {}
    parameters: dict[str, Parameter] = {}
    signature = inspect.signature(function).parameters
    for argument, declared in signature.items():
        read = next((note for note in get_args(hints.get(argument))[1:] if isinstance(note, Source)), None)
        if read is not None:
            sources[argument] = read
        elif argument != "flow":
            parameter = _parameter(name, argument, declared.default is inspect.Parameter.empty)
            parameters[parameter.name] = parameter
    return sources, parameters, signature.get("flow")


def _parameter(metric_name: str, argument: str, required: bool) -> Parameter:
    for suffix, dimension in _SUFFIXES.items():
        if argument.endswith(suffix):
            return Parameter(argument.removesuffix(suffix), dimension, required, argument)
    allowed = ", ".join(_SUFFIXES)
    raise TypeError(f"metric {metric_name!r}: {argument!r} has no source and no suffix; allowed suffixes: {allowed}")


def load_own_metrics(study_dir: Path) -> None:
    """Register the metrics of a study's ``metrics.py``, once. Raises StudyError if it cannot be loaded."""
    path = study_dir / OWN_METRICS
    if not os.path.lexists(path):
        return
    content = _program(path)
    module_name = _module_name(study_dir)
    if module_name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    module.__dict__[_DIGEST] = hashlib.sha256(content).hexdigest()
    before = dict(METRICS)
    try:
        exec(compile(content, path, "exec"), module.__dict__)
    except BaseException as error:
        del sys.modules[module_name]
        METRICS.clear()
        METRICS.update(before)
        if isinstance(error, KeyboardInterrupt):
            raise
        own = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else next(reversed(own), None)
        reason = error.msg if isinstance(error, SyntaxError) else f"{type(error).__name__}: {error}"
        problem = Problem(str(path), line, "", reason)
        raise StudyError("the study's own metrics cannot be loaded", problems=(problem,)) from error


def own_metrics_digest(study_dir: Path) -> str | None:
    """Return the SHA-256 of the ``metrics.py`` that was registered; None if none was."""
    return getattr(sys.modules.get(_module_name(study_dir)), _DIGEST, None)


def _module_name(study_dir: Path) -> str:
    return f"longfat_metrics_of_{study_dir.resolve().name.replace('-', '_')}"


def _program(path: Path) -> bytes:
    """Return the text of a study's metrics. Raises StudyError if it cannot be read, or the user does not trust it."""
    try:
        content = read_plain(path, path.parent, MOST_BYTES)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StudyError(f"the study's own metrics cannot be read: {reason}", where=str(path)) from error
    require_trust(path, content)
    return content
