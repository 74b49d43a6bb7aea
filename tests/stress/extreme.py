# SPDX-License-Identifier: Apache-2.0
"""Executes extreme manifests that are allowed in virtual time: each run is valid, or has a reason.

A round changes one to four keys of a plain experiment to the ends of the allowed range. If `check` accepts it, it is
executed. A valid run has no goodput above the rate of its path; an invalid one has a reason that is no Python error. A
run that takes too long is ended, and must end at once.
"""

from __future__ import annotations

import builtins
import copy
import random
import re
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from longfat.backends.registry import DEFAULT_BACKEND
from longfat.dataset.build import build_dataset
from longfat.dataset.load import load_dataset
from longfat.execute.study import CANNOT_EXECUTE
from longfat.plan.lockfile import read_lock
from longfat.study.catalog.ccas import CCAS
from stress.commands import await_gone, below, call, ended, send, start

PLAIN: Mapping[str, Any] = {
    "id": "one",
    "topology": {"kind": "delay", "rate": "10 Mbit/s", "rtt": "20 ms"},
    "hosts": {"mtu": "1500 B"},
    "flows": [{"name": "f", "from": "client1", "to": "server", "algorithm": "a", "duration": "250 ms"}],
}
FLOW = {"name": "g", "from": "client1", "to": "server", "algorithm": "a", "duration": "250 ms"}
UDP = {**{key: FLOW[key] for key in ("from", "to", "duration")}, "name": "u", "period": "1 s"}
DUMBBELL = {"kind": "dumbbell", "rate": "5 Mbit/s", "rtt": "10 ms", "senders": 1}
RED = {"kind": "red", "limit": 3, "min": 1, "max": 2, "probability": 1, "ecn": True}
EXTREMES: Sequence[tuple[str, Sequence[Any]]] = (
    ("topology.rate", ["10 kbit/s", "64 kbit/s", "256 kbit/s", "1 Gbit/s", "10 Gbit/s", "40 Gbit/s"]),
    ("topology.rtt", ["1 us", "100 us", "999999 us", "5 s", "29 s"]),
    ("topology.delay_placement", ["forward", "reverse"]),
    ("topology", [{"kind": "direct", "rate": "10 Mbit/s"}, {"kind": "direct", "rate": "1 Gbit/s", "rtt": "1 us"}]),
    (
        "topology",
        [
            {**DUMBBELL, "host_rate": "unlimited"},
            {**DUMBBELL, "reverse_queue": {"limit": 1}, "bottleneck_queue": RED},
            {**DUMBBELL, "rate": "1 Gbit/s", "rtt": "1 us", "senders": 40, "bottleneck_queue": {"limit": 1}},
        ],
    ),
    ("hosts.mtu", ["576 B", "68 B", "9000 B", "65535 B"]),
    ("hosts.txqueuelen", [1, 2, 1_000_000]),
    ("hosts.tx_ring", [1, 4096, 1_000_000]),
    ("hosts.recovery", ["newreno", "reno"]),
    ("hosts.offloads", [["tso"], ["tso", "gso", "gro"]]),
    ("hosts.sysctls", [{"net.ipv4.tcp_timestamps": 0}, {"net.ipv4.tcp_window_scaling": 0}, {"net.ipv4.tcp_ecn": 1}]),
    ("hosts.sysctls", [{"net.ipv4.tcp_mem": "1 1 1"}, {"net.ipv4.tcp_reordering": 127}, {"net.ipv4.tcp_retries2": 0}]),
    ("flows.0.window", ["1 B", "2 KiB", "3 KiB", "64 MiB", "1 GiB"]),
    ("flows.0.send_window", ["1 B", "5 KiB", "256 MiB"]),
    ("flows.0.duration", ["1 us", "101 ms", "1 s", "10 s"]),
    ("flows.0.start", ["1 us", "999 ms", "60 s"]),
    ("flows.0.start_jitter", ["1 us", "5 s"]),
    ("flows.0.streams", [2, 33, 100, 500]),
    ("flows.0.transfer", ["100 B", "1448 B", "1500 kB", "1 GiB"]),
    ("drops", [[{"at": "0 s"}], [{"at": "500 ms"}], [{"at": f"{number} ms"} for number in (300, 500, 700, 900)]]),
    ("probes.sockets", ["1 ms", "1 s", "60 s"]),
    ("probes.queues", ["1 ms", None]),
    ("probes.capture", [["f"]]),
    ("probes.ping", ["1 ms", "1 s"]),
    ("udp", [[{**UDP, "mean": "9 Mbit/s", "swing": "9 Mbit/s"}], [{**UDP, "mean": "1 bit/s", "swing": "1 bit/s"}]]),
    ("web", [[{**FLOW, "name": "w", "users": users, "off_times": "1 %"}] for users in (1, 100, 2000)]),
    ("memory", ["256 MiB", "2 GiB"]),
)
RUN_S = 40.0  # a longer run is ended
END_S = 120.0
ERRORS = [name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)]
PYTHON = re.compile(rf"Traceback|\b({'|'.join(ERRORS)})\b")
HEADERS_BYTES, FRAME_BYTES = 40, 38  # of IPv4 and TCP, and around a packet of Ethernet: preamble, gap, header and FCS
REFUSED, STOPPED = "refused before the run", "ended before its end"


def prepare(work: Path, patch: pytest.MonkeyPatch) -> Callable[[random.Random], str]:
    """Return the round."""

    def play(chance: random.Random) -> str:
        study = work / "extreme"
        study.mkdir()
        text = manifest(chance)
        (study / "study.yaml").write_text(text, encoding="utf-8")
        try:
            return _round(study, chance)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{text}") from error
        finally:
            shutil.rmtree(study)

    return play


def _round(study: Path, chance: random.Random) -> str:
    if call("check", study).refused:
        return "refused by check"
    if early := _executed(study, study / "first"):
        return early
    return judged(study / "first")


def _executed(study: Path, results: Path) -> str:
    """Execute the study; return why it has no result, "" if it has one."""
    output = study / "output"
    command = ["run", str(study), "--backend", DEFAULT_BACKEND, "--jobs", "1", "--results", str(results)]
    process = start(command, output, study)
    process.join(RUN_S)
    if process.exitcode is None:
        tree = below(process.pid)
        send(signal.SIGTERM, tree[:1])
        ended(process, output, END_S)
        await_gone(tree, study)
        return STOPPED
    answer = ended(process, output, END_S)
    if answer.status == 3 and CANNOT_EXECUTE in answer.output:
        return REFUSED
    assert answer.status in (0, 4), f"exit status {answer.status}: {answer.output[-1000:]}"
    return ""


def manifest(chance: random.Random) -> str:
    """Return a study with some keys at the ends of the allowed range."""
    experiment = copy.deepcopy(dict(PLAIN))
    for path, values in chance.sample(EXTREMES, chance.choice([1, 1, 2, 3, 4])):
        place: Any = experiment
        *way, last = path.split(".")
        for name in way:
            place = place[int(name)] if isinstance(place, list) else place.setdefault(name, {})
        place[last] = copy.deepcopy(chance.choice(values))
    document = {
        "format": 2,
        "study": "extreme",
        "title": "At the ends of the allowed range",
        "stack": chance.choice(["modern", "linux-2.4"]),
        "algorithms": {"a": {"cca": chance.choice(sorted(CCAS))}},
        "experiments": [experiment],
    }
    return yaml.safe_dump(document, sort_keys=False)


def judged(results: Path) -> str:
    """Return the status of the run. Raises AssertionError for an invalid run without reason and for impossible goodput.

    The goodput of several connections is not compared: iperf2 does not report when each began (docs/limitations.md).
    """
    build_dataset(results)
    dataset, plan = load_dataset(results), read_lock(results / "lock.json")
    if not dataset.runs:
        return "left out by the plan"
    (run,), spec = dataset.runs, plan.runs[0].spec
    if run.status != "ok":
        assert run.reason and run.status != "missing", run.status
        assert not PYTHON.search(run.reason), run.reason
        return run.status
    mtu = max(link.mtu_bytes for link in spec.links)
    rates = [port.rate_bps for link in spec.links for port in (link.a.egress, link.b.egress) if port.rate_bps]
    allowed = min(rates) * (mtu - HEADERS_BYTES) / (mtu + FRAME_BYTES)
    several = {flow.name for flow in spec.flows if flow.streams > 1 and not flow.transfer_bytes}
    for flow in dataset.flows.get(run.run_id, ()):
        goodput = flow["goodput_bps"]
        assert flow["flow"] in several or goodput <= allowed * 1.001, f"goodput {goodput:.0f}, path {allowed:.0f} bit/s"
    return "valid"
