# SPDX-License-Identifier: Apache-2.0
"""Finds a backend by its name.

Owns the table of names. Must not build or start anything itself; a backend's module is imported when it is
asked for, because one backend's tools may be absent where another works.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from longfat.backends.protocol import Backend
from longfat.errors import StudyError

Say = Callable[[str], None]


def _open_fake(settings: Mapping[str, Any], say: Say) -> Backend:
    from longfat.backends.fake import FakeBackend

    return FakeBackend(**settings)


def _open_virtual(settings: Mapping[str, Any], say: Say) -> Backend:
    from longfat.backends.virtual import open_virtual

    return open_virtual(say=say, **settings)


def _open_hosts(settings: Mapping[str, Any], say: Say) -> Backend:
    from longfat.backends.hosts import open_hosts

    return open_hosts(say=say, **{"lab": None, **settings})


def _open_ns2(settings: Mapping[str, Any], say: Say) -> Backend:
    from longfat.backends.ns2 import open_ns2

    return open_ns2()


def _open_ns3(settings: Mapping[str, Any], say: Say) -> Backend:
    from longfat.backends.ns3 import open_ns3

    return open_ns3()


def _open_realtime(name: str) -> Callable[[Mapping[str, Any], Say], Backend]:
    def opened(settings: Mapping[str, Any], say: Say) -> Backend:
        from longfat.backends.realtime import open_realtime

        return open_realtime(name, say=say, **settings)

    return opened


_OPENERS: dict[str, Callable[[Mapping[str, Any], Say], Backend]] = {
    "containernet": _open_realtime("containernet"),
    "fake": _open_fake,
    "hosts": _open_hosts,
    "mininet": _open_realtime("mininet"),
    "ns2": _open_ns2,
    "ns3": _open_ns3,
    "virtual": _open_virtual,
}


def backend_names() -> tuple[str, ...]:
    """The names that ``open_backend`` knows, sorted."""
    return tuple(sorted(_OPENERS))


def require_backend(name: str) -> None:
    """Raise StudyError, with the names there are, unless ``name`` is one of them."""
    if name not in _OPENERS:
        near = difflib.get_close_matches(name, backend_names(), n=1)
        raise StudyError(
            f"unknown backend {name!r}, there are {', '.join(backend_names())}",
            hint=f"did you mean {near[0]!r}?" if near else None,
        )


def open_backend(name: str, settings: Mapping[str, Any], say: Say = lambda line: None) -> Backend:
    """The backend called ``name``, with keyword arguments of its own in ``settings``.

    ``say`` is told, in one line each, what takes time and what the user should know.

    Raises StudyError on an unknown name, RigError when the backend cannot be made ready.
    """
    require_backend(name)
    return _OPENERS[name](settings, say)
