# SPDX-License-Identifier: Apache-2.0
"""Backends that not every machine has, for tests: in real time, and simulators. Must not assert anything."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from dockerd import Docker, docker
from lab_in_namespaces import Lab, environment, lab_in_namespaces
from needs import refuse

from longfat.backends import hosts
from longfat.backends.protocol import Backend
from longfat.backends.registry import open_backend
from longfat.execute.study import wait_for_idle_cpu
from longfat.guest.counters import pressure_us
from longfat.system.errors import RigError

MOMENT_S = 10.0
STARVED = re.compile(r"tasks waited for a CPU \d+ % of the time, allowed \d+ %")  # and no other reason beside it


@contextmanager
def realtime(name: str) -> Iterator[tuple[Backend, dict[str, str]]]:
    """The backend and the environment of a command that uses it.

    Skips the test where the backend cannot work, or fails it where LONGFAT_REQUIRE lists it.
    """
    if os.geteuid():
        pytest.skip("a backend in real time needs root")
    if name == "hosts":
        with lab_in_namespaces() as lab, on_lab(lab) as backend:
            yield backend, dict(os.environ)
        return
    with docker() if name == "containernet" else nullcontext(Docker()) as daemon, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", daemon.environment)
        backend = open_backend(name, {})
        _require(name, backend.capabilities().reasons)
        yield backend, daemon.environment


def skip_if_starved(results: Path) -> None:
    """Skip the test, with what was measured, where the machine had no CPU for a run however often it was repeated."""
    try:
        text = (results / "dataset" / "exclusions.csv").read_text(encoding="utf-8")
    except OSError:
        return
    reasons = [row["reason"] for row in csv.DictReader(text.splitlines())]
    if reasons and all(STARVED.fullmatch(reason) for reason in reasons):
        pytest.skip(f"the machine is too busy for real time: {'; '.join(reasons)}")


def skip_if_busy() -> None:
    """Skip the test, with what was measured, where other programs do not leave the CPUs alone for a moment."""
    if pressure_us() is not None and not wait_for_idle_cpu(patience_s=MOMENT_S):
        pytest.skip(f"the machine is too busy for real time: for {MOMENT_S:.0f} s tasks waited for a CPU")


def simulator(name: str) -> Backend:
    """The backend, its model built now.

    Skips the test where the simulator is not installed or its model does not build, or fails it where LONGFAT_REQUIRE
    lists it.
    """
    try:
        backend = open_backend(name, {})
    except RigError as error:
        _require(name, (str(error),))
        raise
    _require(name, backend.capabilities().reasons)
    return backend


def _require(name: str, reasons: Sequence[str]) -> None:
    if reasons:
        refuse(name, f"backend {name} cannot work here: {'; '.join(reasons)}")


@contextmanager
def on_lab(lab: Lab) -> Iterator[Backend]:
    """Backend ``hosts`` on a lab in namespaces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", environment(lab))
        patch.setattr(hosts, "CLOCK_LIMIT_NS", 10**9)  # a busy machine answers late, which is not the tests' matter
        yield open_backend("hosts", {"lab": lab.folder})
