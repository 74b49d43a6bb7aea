# SPDX-License-Identifier: Apache-2.0
"""All settings of an experiment at a point, with their values, and whether these are defaults.

Pure. Owns the settings in terms of the manifest; ``longfat.plan.resolve`` has the settings of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from pydantic import BaseModel

from longfat.spec.runspec import RunSpec
from longfat.spec.units import Quantity, Size
from longfat.study.catalog.stacks import kernel_of_stack
from longfat.study.changing import TraceFile
from longfat.study.models import Experiment
from longfat.study.schema.files import StudyFile
from longfat.study.study import Study, host_settings
from longfat.study.traffic import SECTIONS
from longfat.study.traffic.algorithm import Algorithm

_PARTS = ("topology", *SECTIONS, "probes", "drops")
_MEMORY = Size(RunSpec.memory_bytes)


@dataclass(frozen=True)
class Setting:
    """A value as in a manifest; ``default`` if the manifest does not state it."""

    text: str
    default: bool

    def __str__(self) -> str:
        return f"{self.text} (default)" if self.default else self.text


def settings(experiment: Experiment, study: Study) -> dict[str, Setting]:
    """Return every setting of an experiment at a point by its key, such as ``topology.rtt`` or ``flows.f1.window``.

    Omitted settings without a default value are not listed.
    """
    found = dict(_host_settings(experiment, study))
    for section in _PARTS:
        value = getattr(experiment, section)
        default = section not in experiment.model_fields_set
        found |= dict(_leaves(section, value, study, default=default))
    kernel = experiment.kernel or study.header.kernel
    found["kernel"] = Setting(kernel or kernel_of_stack(study.header.stack), kernel is None)
    if experiment.duration:
        found["duration"] = Setting(str(experiment.duration), default=False)
    found["memory"] = Setting(str(experiment.memory or _MEMORY), experiment.memory is None)
    for name in ("clock_tolerance", "phases"):
        found[name] = Setting(str(getattr(experiment, name)), name not in experiment.model_fields_set)
    return found


def _host_settings(experiment: Experiment, study: Study) -> Iterator[tuple[str, Setting]]:
    layers = (experiment.hosts, study.header.hosts)
    resolved = host_settings(study.header.hosts, experiment.hosts)
    if resolved.processing_time:
        yield "hosts.processing_time.jitter", Setting(str(resolved.processing_time.jitter), default=False)
    for name in (field.name for field in fields(resolved) if field.name not in ("processing_time", "sysctls")):
        value = getattr(resolved, name)
        default = all(getattr(layer, name) is None for layer in layers)
        if value not in (None, ()) and not (name == "input_queue" and not resolved.packet_time):
            yield f"hosts.{name}", Setting(_text(value), default)
    for name, value in resolved.sysctls.items():
        yield f"hosts.sysctls.{name}", Setting(value, default=False)
    for host, own in per_host(experiment, study).items():
        for key, value in own.items():
            parts = {f"{key}.{name}": part for name, part in value.items()} if key == "sysctls" else {key: value}
            for name, part in parts.items():
                yield f"hosts.per_host.{host}.{name}", Setting(_text(part), default=False)


def per_host(experiment: Experiment, study: Study) -> dict[str, dict[str, Any]]:
    """Return the settings of single hosts of an experiment, laid over the study's."""
    given = (study.header.hosts.per_host, experiment.hosts.per_host)
    found: dict[str, dict[str, Any]] = {}
    for host in (name for side in experiment.sides for name in side):
        layers = [one[host] for one in given if host in one]
        own = {key: getattr(layer, key) for layer in layers for key in layer.model_fields_set}
        if any(layer.sysctls for layer in layers):
            own["sysctls"] = {name: value for layer in layers for name, value in layer.sysctls.items()}
        if own:
            found[host] = own
    return found


def _leaves(path: str, value: Any, study: Study, *, default: bool) -> Iterator[tuple[str, Setting]]:
    if isinstance(value, Algorithm):
        first = f"{value.cca} of {value.file.name}" if value.file else value.cca
        parts = [first, *(f"{name} {_text(given)}" for name, given in value.parameters.items())]
        yield path, Setting(", ".join(parts), default)
    elif isinstance(value, BaseModel):
        for name, field in type(value).model_fields.items():
            key = field.alias or name
            below = default or name not in value.model_fields_set
            if key != "name":
                yield from _leaves(f"{path}.{key}", getattr(value, name), study, default=below)
    elif isinstance(value, tuple) and any(isinstance(part, BaseModel) for part in value):
        for index, part in enumerate(value):
            yield from _leaves(f"{path}.{getattr(part, 'name', index + 1)}", part, study, default=default)
    elif value not in (None, ()):
        text = _text(value)
        if path.endswith(".algorithm"):
            used = study.header.algorithms[value]
            text = ", ".join([text, *(f"{name} {_text(given)}" for name, given in used.parameters.items())])
        yield path, Setting(text, default)


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def expanded(experiment: Experiment, study: Study) -> dict[str, Any]:
    """Return an experiment at a point as plain data in the manifest's keys, with defaults and inherited keys."""
    hosts = host_settings(study.header.hosts, experiment.hosts)
    data = {
        "id": experiment.id,
        "repetitions": experiment.repetitions,
        "duration": experiment.duration,
        "pairs_with": experiment.pairs_with,
        "kernel": experiment.kernel or study.header.kernel or kernel_of_stack(study.header.stack),
        "memory": experiment.memory or _MEMORY,
        "clock_tolerance": experiment.clock_tolerance,
        "phases": experiment.phases,
        "topology": experiment.topology,
        "hosts": {
            **{name: getattr(hosts, name) for name in type(experiment.hosts).model_fields if name != "per_host"},
            "per_host": per_host(experiment, study),
        },
        **{name: [_with_algorithm(one, study) for _, one in experiment.entries(name)] for name in SECTIONS},
        "probes": experiment.probes,
        "drops": experiment.drops,
    }
    plain: dict[str, Any] = _plain(data)
    return plain


def _with_algorithm(traffic: BaseModel, study: Study) -> Mapping[str, Any]:
    data = {field.alias or name: getattr(traffic, name) for name, field in type(traffic).model_fields.items()}
    data.pop("count", None)
    return {**data, "algorithm": study.algorithm(data["algorithm"])} if "algorithm" in data else data


def _plain(value: Any) -> Any:
    if isinstance(value, Quantity | StudyFile | TraceFile):
        return str(value)
    if isinstance(value, Algorithm):
        return value.given
    if isinstance(value, BaseModel):
        return {field.alias or name: _plain(getattr(value, name)) for name, field in type(value).model_fields.items()}
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
