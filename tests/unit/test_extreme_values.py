# SPDX-License-Identifier: Apache-2.0
"""Extreme values of every number in a manifest: refused with their place, or planned with requests for the kernel."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from longfat.guest import policers, tc
from longfat.guest.qdisc import card_commands, impairment_command, queue_commands
from longfat.guest.wire import Wire
from longfat.plan import build_plan
from longfat.spec.network import impairment_seed, ports
from longfat.spec.runspec import RunSpec
from longfat.spec.units import Duration, Rate, Ratio, Size
from longfat.study.changing import Change
from longfat.study.impairments import Bursts
from longfat.study.load import load_study
from longfat.study.queues import KINDS as QUEUES
from longfat.study.topologies import TOPOLOGIES as MODELS
from longfat.study.traffic import SECTIONS
from longfat.system.errors import Problem, StudyError

NUMBERS = ("0", "7", "999999999999999", "-1")
UNITS = [list(kind.units) for kind in (Rate, Duration, Size, Ratio)] + [["bdp"]]
TOPOLOGIES = {
    **{f"{kind} {at}": text for kind, model in MODELS.items() for at, text in enumerate(model.examples)},
    **{
        f"queue {kind}": f"{{kind: dumbbell, rate: 20 Mbit/s, rtt: 40 ms, senders: 1, bottleneck_queue: {text}}}"
        for kind, queue in QUEUES.items()
        for text in queue.examples
    },
    "bursts": f"{{kind: delay, rate: 20 Mbit/s, rtt: 40 ms, loss: {Bursts.examples[0]}}}",
    "changes": f"{{kind: delay, rate: 20 Mbit/s, rtt: 40 ms, changes: [{Change.examples[0]}]}}",
}
HOSTS = {
    "mtu": "1500 B",
    "txqueuelen": 100,
    "tx_ring": 1,
    "interrupt_moderation": "10 us",
    "packet_time": "1 us",
    "input_queue": 10,
}
FLOW = {"name": "f", "from": "client1", "to": "server", "algorithm": "a", "duration": "1 s", "window": "64 KiB"}
FLOW |= {"send_window": "32 KiB", "start": "0 s", "start_jitter": "1 ms", "streams": 1, "count": 1}
PROBES = {"sockets": "10 ms", "queues": "10 ms", "ping": "10 ms"}


def whole(topology: Any, **sections: Any) -> dict[str, Any]:
    flow = FLOW | ({"to": "server1"} if topology.get("receivers") == 2 else {})
    one = {"id": "one", "topology": topology, "flows": [flow], "hosts": HOSTS, "probes": PROBES, **sections}
    return {"format": 2, "study": "s", "title": "t", "algorithms": {"a": {"cca": "reno"}}, "experiments": [one]}


def leaves(value: Any, *path: str | int) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, *path, key)
    else:
        yield path, value


def extremes(value: Any) -> list[Any]:
    """Return other values of a number, or of a text with a unit; none of anything else."""
    if isinstance(value, bool):
        return []
    if isinstance(value, int | float):
        return [0, 1, 10**6, 2**32, 0.5]
    unit = str(value).rpartition(" ")[2]
    family = next((units for units in UNITS if unit in units), [])
    several = dict.fromkeys([*family[:1], unit, *family[-1:]] if family else ())
    return [f"{number} {one}" for number, one in product(NUMBERS, several)]


def planned(folder: Path, data: dict[str, Any]) -> RunSpec | None:
    """Return the run of a study, or None where the study is refused with the places of its problems."""
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    problems: Sequence[Problem] = ()
    try:
        (run,) = build_plan(load_study(path), pins={}).runs
    except StudyError as error:
        problems = error.problems
    else:
        return run.spec
    assert problems
    assert all(problem.line and problem.key for problem in problems), problems
    return None


def tell_the_kernel(spec: RunSpec) -> None:
    """Make every request to the kernel that the interfaces of a run need, without a kernel."""
    for port in ports(spec):
        egress = port.egress
        if wire := Wire.of(egress):
            wire.request(1)
        if egress.policer:
            policers.request(1, egress.policer)
            assert egress.policer.passes(port.mtu_bytes + 14)
        lines = queue_commands(port.name, egress) + (card_commands(port.name, egress.card) if egress.card else [])
        if egress.impairment:
            lines.append(impairment_command(port.name, egress, impairment_seed(spec, port)))
        for line in lines:
            tc.request(line, {port.name: 1})


@pytest.mark.parametrize("name", [*TOPOLOGIES, *SECTIONS, "rest"])
def test_no_number_of_a_manifest_ends_in_a_traceback(tmp_path: Path, name: str) -> None:
    (tmp_path / "cell.trace").write_text("1\n2\n")
    (tmp_path / "send.py").write_text("")
    (tmp_path / "receive.py").write_text("")
    plain = yaml.safe_load(TOPOLOGIES.get(name, TOPOLOGIES["dumbbell 0"]))
    section = {name: [yaml.safe_load(SECTIONS[name].model.examples[0])]} if name in SECTIONS and name != "flows" else {}
    data = whole(plain, **section)
    for one in (entry for entries in section.values() for entry in entries):
        one |= {"algorithm": "a"} if "algorithm" in one else {}
    place = {"rest": ("hosts", "probes"), "flows": ("flows",)}.get(name, tuple(section) or ("topology",))
    assert planned(tmp_path, data)
    tried = accepted = 0
    for path, value in leaves({key: data["experiments"][0][key] for key in place}):
        for other in extremes(value):
            bent = copy.deepcopy(data)
            inner: Any = bent["experiments"][0]
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = other
            spec = planned(tmp_path, bent)
            tried += 1
            if spec:
                accepted += 1
                tell_the_kernel(spec)
    assert 0 < accepted < tried
