# SPDX-License-Identifier: Apache-2.0
"""A study of one flow over a dumbbell, with the keys of its queue, path and hosts; and what its run misses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fake_backend import FakeBackend
from manifests import HEAD, refused, spec_of, study_of

from longfat.spec.gates import Evidence
from longfat.spec.network import Port, lay_out
from longfat.spec.runspec import Queue, RunSpec
from longfat.study.study import Study
from longfat.study.traffic import misses

STUDY = """\
  - id: first
    topology:
      kind: dumbbell
      rate: 100 Mbit/s
      host_rate: 1 Gbit/s
      rtt: 100 ms
      senders: 1
      bottleneck_queue: {queue}
    hosts: {hosts}
    flows: [{{name: f1, from: client1, to: server, algorithm: standard, duration: 1 s}}]
"""
PLAIN = "{limit: 100}"


def _text(queue: str, keys: str, hosts: str) -> str:
    return HEAD + STUDY.format(queue=f"{queue}\n      {keys}" if keys else queue, hosts=hosts)


def study(folder: Path, queue: str = PLAIN, keys: str = "", hosts: str = "{}") -> Study:
    """Load the study with a queue, and further keys of its topology."""
    return study_of(folder, _text(queue, keys, hosts))


def planned(
    folder: Path, queue: str = PLAIN, keys: str = "", hosts: str = "{}", *, backend: str = "virtual"
) -> RunSpec:
    """Return the run of the study."""
    return spec_of(folder, _text(queue, keys, hosts), backend=backend)


def problem(folder: Path, queue: str = PLAIN, keys: str = "", hosts: str = "{}") -> str:
    """Return key and message of the only problem of the study."""
    (found,) = refused(lambda: study(folder, queue, keys, hosts))
    return f"{found.key}: {found.message}"


def port_of(spec: RunSpec, node: str, peer: str) -> Port:
    """Return the port of a node towards another."""
    (port,) = (port for port in lay_out(spec).ports[node] if port.peer == peer)
    return port


def queue_of(spec: RunSpec) -> Queue:
    """Return the queue of the bottleneck."""
    return port_of(spec, "switch", "server").egress.queue


def missed(
    spec: RunSpec, folder: Path, bent: Callable[[dict[str, Any]], bool], bend: Callable[[dict[str, Any]], object]
) -> tuple[str, ...]:
    """Return the misses of a run whose only interface for which ``bent`` is true reads back as ``bend`` changes it."""
    folder.mkdir()
    FakeBackend().run(spec, folder)
    achieved, reports = (json.loads((folder / f"{name}.json").read_text()) for name in ("achieved", "flows"))
    (port,) = filter(bent, achieved["interfaces"])
    bend(port)
    return misses(Evidence(spec, achieved, reports))
