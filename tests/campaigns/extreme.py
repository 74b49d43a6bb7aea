# SPDX-License-Identifier: Apache-2.0
"""Runs manifests that are extreme and allowed in the virtual laboratory: each says what came of it, and why.

A round changes one to four keys of a plain experiment to the ends of what is allowed. What `check` accepts is run. A
run that is valid has no goodput above what its path carries, and every fourth is run twice and must give equal bytes;
one that is not has a reason which is no error of Python. A run that takes too long is ended, and must end at once.
"""

from __future__ import annotations

import builtins
import copy
import random
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from campaigns.commands import COMMAND, answered, call, environment
from campaigns.kill import await_gone
from campaigns.processes import await_end, below, marked
from campaigns.rounds import Campaign, Failed, Round
from longfat.backends.registry import DEFAULT_BACKEND
from longfat.catalog.ccas import CCAS
from longfat.dataset.build import build_dataset
from longfat.dataset.load import load_dataset
from longfat.execute.study import CANNOT_EXECUTE
from longfat.plan.lockfile import read_lock
from longfat.record.bundle import run_folder_name

PLAIN: Mapping[str, Any] = {
    "id": "one",
    "topology": {"kind": "delay", "rate": "10 Mbit/s", "rtt": "20 ms"},
    "hosts": {"mtu": "1500 B"},
    "flows": [{"name": "f", "from": "client1", "to": "server", "algorithm": "a", "duration": "1 s"}],
}
FLOW = {"name": "g", "from": "client1", "to": "server", "algorithm": "a", "duration": "1 s"}
UDP = {**{key: FLOW[key] for key in ("from", "to", "duration")}, "name": "u", "period": "1 s"}
EXTREMES: Sequence[tuple[str, Sequence[Any]]] = (
    ("topology.rate", ["10 kbit/s", "64 kbit/s", "256 kbit/s", "1 Gbit/s", "10 Gbit/s", "40 Gbit/s"]),
    ("topology.rtt", ["1 us", "100 us", "999999 us", "5 s", "29 s"]),
    ("topology.delay_placement", ["forward", "reverse"]),
    ("topology", [{"kind": "direct", "rate": "10 Mbit/s"}, {"kind": "direct", "rate": "1 Gbit/s", "rtt": "1 us"}]),
    (
        "topology",
        [
            {"kind": "dumbbell", "rate": "5 Mbit/s", "rtt": "10 ms", "senders": 1, "host_rate": "unlimited"},
            {"kind": "dumbbell", "rate": "5 Mbit/s", "rtt": "1 s", "senders": 9, "receivers": 9},
            {
                "kind": "dumbbell",
                "rate": "5 Mbit/s",
                "rtt": "10 ms",
                "senders": 1,
                "reverse_queue": {"limit": 1},
                "bottleneck_queue": {"kind": "red", "limit": 3, "min": 1, "max": 2, "probability": 1, "ecn": True},
            },
            {"kind": "dumbbell", "rate": "1 Gbit/s", "rtt": "1 us", "senders": 40, "bottleneck_queue": {"limit": 1}},
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
    ("flows.0.duration", ["1 us", "101 ms", "250 ms", "10 s"]),
    ("flows.0.start", ["1 us", "999 ms", "60 s"]),
    ("flows.0.start_jitter", ["1 us", "5 s"]),
    ("flows.0.streams", [2, 33, 100, 500]),
    ("flows.0.transfer", ["100 B", "1448 B", "1500 kB", "1 GiB"]),
    (
        "flows",
        [
            [*PLAIN["flows"], {**FLOW, "start": "900 ms"}],
            [*PLAIN["flows"], {**FLOW, "from": "server", "to": "client1"}],
        ],
    ),
    ("drops", [[{"at": "0 s"}], [{"at": "500 ms"}], [{"at": f"{number} ms"} for number in (300, 500, 700, 900)]]),
    ("probes.sockets", ["1 ms", "1 s", "60 s"]),
    ("probes.queues", ["1 ms", None]),
    ("probes.capture", [["f"]]),
    ("probes.ping", ["1 ms", "1 s"]),
    ("udp", [[{**UDP, "mean": "9 Mbit/s", "swing": "9 Mbit/s"}], [{**UDP, "mean": "1 bit/s", "swing": "1 bit/s"}]]),
    ("web", [[{**FLOW, "name": "w", "users": users, "off_times": "1 %"}] for users in (1, 100, 2000)]),
    ("memory", ["256 MiB", "2 GiB"]),
)
RUN_S = 75.0  # more is not waited for
END_S = 30.0  # so long a command may take to end after SIGTERM
TWICE = 0.25
ERRORS = [name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)]
PYTHON = re.compile(rf"Traceback|\b({'|'.join(ERRORS)})\b")
HEADERS_BYTES, FRAME_BYTES = 40, 38  # of IPv4 and TCP, and around a packet of Ethernet: preamble, gap, header and FCS


class Refused(Exception):
    """The laboratory has said before the run that it cannot do it."""


class Extremes(Campaign):
    """The campaign in the folder ``work``."""

    def play(self, chance: random.Random) -> Round:
        """One round."""
        study, struck = self.work / "extreme", ""
        study.mkdir()
        try:
            text, changed = manifest(chance)
            struck = f"an algorithm, and keys: {len(changed) - 1}"
            (study / "study.yaml").write_text(text, encoding="utf-8")
            try:
                return Round(struck, self._run(study, chance))
            except Refused:
                return Round(struck, "refused by the laboratory")
            except Failed as error:
                raise Failed(error.outcome, f"{', '.join(changed)}: {error}\n{text}") from error
        except Failed as error:
            return Round(struck, error.outcome, str(error))
        finally:
            shutil.rmtree(study)

    def _run(self, study: Path, chance: random.Random) -> str:
        """What comes of a manifest, in words. Raises Failed."""
        if call("check", study).refused:
            return "refused by check"
        if not self._executed(study, study / "first"):
            return "ended before its end"
        found = judged(study / "first")
        if found != "valid" or chance.random() >= TWICE:
            return found
        if not self._executed(study, study / "second"):
            return "ended before its end"
        build_dataset(study / "second")
        one, other = ([run.measured for run in load_dataset(study / name).runs] for name in ("first", "second"))
        if one != other:
            raise Failed("wrong", "another measurement at the second time")
        return "valid, twice the same"

    def _executed(self, study: Path, results: Path) -> bool:
        """Run it; False where it took too long and was ended. Raises Failed."""
        command = [*COMMAND, "run", str(study), "--backend", DEFAULT_BACKEND, "--jobs", "1", "--results", str(results)]
        temporary = study / "tmp"
        temporary.mkdir(exist_ok=True)
        with (study / "output").open("w+b") as output:
            own = environment(TMPDIR=str(temporary), LONGFAT_ROOT=str(study))
            process = subprocess.Popen(
                command, env=own, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
            in_time = has_ended(process, RUN_S)
            if not in_time:
                tree = below(process.pid)
                process.send_signal(signal.SIGTERM)
                await_ended(process)
                await_gone([*tree, *marked("TMPDIR", str(temporary))])
        answer = answered(process.returncode, (study / "output").read_text(encoding="utf-8", errors="replace"))
        if answer.status == 3 and CANNOT_EXECUTE in answer.output:
            raise Refused
        if in_time and answer.status not in (0, 4):
            raise Failed("wrong", f"exit status {answer.status}: {answer.output[-1000:]}")
        return in_time


def manifest(chance: random.Random) -> tuple[str, list[str]]:
    """A study with some keys at the ends of what is allowed, and what they are."""
    experiment, changed = copy.deepcopy(dict(PLAIN)), []
    for path, values in chance.sample(EXTREMES, chance.choice([1, 1, 2, 3, 4])):
        value = copy.deepcopy(chance.choice(values))
        place: Any = experiment
        *way, last = path.split(".")
        for name in way:
            place = place[int(name)] if isinstance(place, list) else place.setdefault(name, {})
        place[last] = value
        changed.append(f"{path} = {value}")
    cca = chance.choice(sorted(CCAS))
    document = {
        "format": 2,
        "study": "extreme",
        "title": "At the ends of what is allowed",
        "stack": chance.choice(["modern", "linux-2.4"]),
        "algorithms": {"a": {"cca": cca}},
        "experiments": [experiment],
    }
    return yaml.safe_dump(document, sort_keys=False), [*changed, cca]


def judged(results: Path) -> str:
    """What became of the run: valid, invalid or failed. Raises Failed where that is not told, or cannot be."""
    build_dataset(results)
    dataset, plan = load_dataset(results), read_lock(results / "lock.json")
    if not dataset.runs:
        return "left out by the plan"
    (run,), spec = dataset.runs, plan.runs[0].spec
    if run.status != "ok":
        if not run.reason or PYTHON.search(run.reason) or run.status == "missing":
            raise Failed("wrong", f"{run.status} for a reason that is none: {run.reason}")
        return f"{run.status}, with its reason"
    mtu = max(link.mtu_bytes for link in spec.links)
    rates = [port.rate_bps for link in spec.links for port in (link.a.egress, link.b.egress) if port.rate_bps]
    allowed = min(rates) * (mtu - HEADERS_BYTES) / (mtu + FRAME_BYTES)
    iperf = results / "raw" / run_folder_name(run.scenario, run.repetition, run.run_id) / "iperf"
    several = {flow.name for flow in spec.flows if flow.streams > 1 and not flow.transfer_bytes}
    for flow in dataset.flows.get(run.run_id, ()):
        name = flow["flow"]
        longer = apart((iperf / f"{name}.server.txt").read_text(encoding="utf-8")) if name in several else 0.0
        if flow["goodput_bps"] > allowed * (1.001 + longer):
            raise Failed("wrong", f"goodput {flow['goodput_bps']:.0f} bit/s, and the path carries {allowed:.0f}")
    return "valid"


def apart(report: str) -> float:
    """By which part the times of a flow's connections differ, from iperf2's report.

    It says how long each lasted, and not when it began: the time of all may be as much longer than that of the longest,
    by which their goodput is reckoned (docs/limitations.md).
    """
    lines = [line.split(",") for line in report.splitlines()]
    lasted = [8 * int(line[7]) / int(line[8]) for line in lines if len(line) > 8 and int(line[8])]
    return 1 - min(lasted) / max(lasted) if lasted else 0.0


def has_ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait so long for a command; whether it has ended."""
    return await_end(lambda: process.poll() is not None, lambda: below(process.pid), seconds)


def await_ended(process: subprocess.Popen[bytes]) -> None:
    """Wait for a command that was told to end. Raises Failed, and kills it, where it does not."""
    if not has_ended(process, END_S):
        for one in below(process.pid):
            one.strike(signal.SIGKILL)
        process.wait()
        raise Failed("wrong", f"SIGTERM did not end it within {END_S:.0f} s")
