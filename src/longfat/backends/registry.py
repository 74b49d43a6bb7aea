# SPDX-License-Identifier: Apache-2.0
"""Backends by name.

Builds and starts nothing. The module of a backend is imported only when needed, because its tools may be missing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from longfat.backends.protocol import Backend, Traits, needed
from longfat.spec.runspec import RunSpec
from longfat.study.schema.names import require

Say = Callable[[str], None]

DEFAULT_BACKEND = "virtual"

MODULES = {
    "containernet": "longfat.backends.realtime",
    "hosts": "longfat.backends.hosts",
    "mininet": "longfat.backends.realtime",
    "ns2": "longfat.backends.ns2",
    "ns3": "longfat.backends.ns3",
    "virtual": "longfat.backends.virtual",
}
"""Modules of backends by name: a new backend is a module and a line here. Each module has ``TRAITS`` by the names
of its backends, and ``open_backend(name, say, **settings)``. A backend added at run time is found, but never offered to
users.
"""

_NAMES = tuple(sorted(MODULES))


def backend_names() -> tuple[str, ...]:
    """Return the names of the project's own backends, sorted."""
    return _NAMES


def backends_that(suit: Callable[[Traits], bool]) -> tuple[str, ...]:
    """Return the names of the project's own backends with suitable traits, sorted."""
    return tuple(name for name in backend_names() if suit(traits_of(name)))


def require_backend(name: str) -> None:
    """Raise StudyError, with the allowed names, on an unknown ``name``."""
    require("backend", name, sorted(MODULES), "--backend")


def traits_of(name: str) -> Traits:
    """Return the traits of the backend. Raises StudyError on an unknown name."""
    traits: Traits = _module(name).TRAITS[name]
    return traits


def open_backend(name: str, settings: Mapping[str, Any], say: Say = lambda line: None) -> Backend:
    """Open the backend ``name`` with its keyword arguments in ``settings``.

    ``say`` receives a line about each slow step, and notices for the user. Raises StudyError on an unknown name,
    RigError if the backend cannot be made ready.
    """
    backend: Backend = _module(name).open_backend(name, say, **settings)
    return backend


def refused_features(name: str, spec: RunSpec) -> Iterator[str]:
    """Yield a reason for each ability that a run needs and the backend lacks on any machine."""
    for feature, words in needed(spec).items():
        if feature not in traits_of(name).can:
            yield lacking(name, feature, words)


def lacking(name: str, feature: str, words: str) -> str:
    """Return the reason that a backend lacks a feature, described by ``words``, with the backends that have it."""
    others = backends_that(lambda traits: feature in traits.can)
    have = f"backend {others[0]} has" if len(others) == 1 else f"backends {', '.join(others)} have"
    return f"backend {name} has no {words}; {have}"


def _module(name: str) -> ModuleType:
    require_backend(name)
    return importlib.import_module(MODULES[name])
