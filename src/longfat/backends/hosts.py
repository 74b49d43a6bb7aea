# SPDX-License-Identifier: Apache-2.0
"""Runs on the hosts of a lab, over SSH: each node of the topology is on a separate machine, links are cables.

Owns the abilities of a lab, and a run's course from the checks before it to the restored hosts.
``longfat.testbed.agent`` acts on a host; the connections are ``longfat.testbed.connect``. Real time, on the hosts' own
kernel.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longfat.backends.collect import collect
from longfat.backends.host_kernel import FEATURES, needed_features
from longfat.backends.protocol import Capabilities, Feature, Traits
from longfat.backends.registry import Say, refused_features
from longfat.errors import RigError, StudyError
from longfat.gates import Evidence, Gate
from longfat.gates.settings import mtu_holds, offloads_hold, queue_holds, rate_and_delay_hold, sysctls_hold
from longfat.guest.ccas import refused_ccas
from longfat.guest.sysctls import GLOBAL_SYSCTLS
from longfat.runspec import Ping, RunSpec
from longfat.testbed.connect.clocks import Clock, drift_ns, read_clock
from longfat.testbed.connect.code import agent_code, code_digest
from longfat.testbed.connect.connection import Connections
from longfat.testbed.connect.inventory import Inventory, read_inventory
from longfat.testbed.connect.join import join_achieved, join_parts
from longfat.testbed.connect.paths import Laid, lay, missed_round_trips
from longfat.testbed.connect.placement import Placement, place

TRAITS = {
    "hosts": Traits(
        clock="real",
        can=frozenset({Feature.TRANSFERS, Feature.CAPTURE, Feature.DROPS, Feature.RED, Feature.QUEUES, Ping.what}),
        lab=True,
        setup_s=6.0,
    )
}
MARGIN_S = 180.0  # a run that lasts longer than its flows by this much hangs
READY_S = 180.0  # an emulated machine builds a network in some ten seconds
RESTORED_S = 60.0
START_AFTER_NS = 1_500_000_000  # from the moment when all are ready: the message must have reached every host
CLOCK_LIMIT_NS = 10_000_000  # the probes' interval is ten times that
BUSY_LIMIT = 0.25
BUSY_TRIES = 20  # of half a second: the work that a login causes calms down

# Settings that can be compared with the declaration before a packet is sent.
GATES_BEFORE: tuple[Gate, ...] = (
    sysctls_hold,
    offloads_hold,
    mtu_holds,
    rate_and_delay_hold,
    queue_holds,
)


@dataclass(frozen=True)
class HostsBackend:
    """Runs on the hosts of ``inventory``; ``facts`` are the agents' reports of each when this was opened."""

    inventory: Inventory
    facts: Mapping[str, Mapping[str, Any]]

    name = "hosts"

    def pins(self) -> dict[str, str]:
        """Digests of the agent's code, of the hosts' programs and of the lab; the kernel is the one they all run."""
        first = next(iter(self.facts.values()))
        lab = (self.inventory.environment, [dataclasses.astuple(host)[:2] for host in self.inventory.hosts])
        programs = {name: facts["programs"] for name, facts in self.facts.items()}
        placements, own_us = [host.placement for host in self.inventory.hosts], dict(self.inventory.own_us)
        return {
            "backend": self.name,
            "kernel": f"{first['kernel']['release']} {first['build']}",
            "image": _digest(programs),
            "code": f"{code_digest()} {self.inventory.environment} {_digest([lab, placements, own_us])[:16]}",
        }

    def capabilities(self) -> Capabilities:
        """The algorithms that all hosts have, and everything that any of them lacks."""
        ccas = (frozenset(facts["kernel"]["ccas"]) for facts in self.facts.values())
        return Capabilities(frozenset.intersection(*ccas), tuple(self._reasons()))

    def _reasons(self) -> Iterator[str]:
        for name, facts in self.facts.items():
            yield from (f"{name}: {reason}" for reason in facts["kernel"]["reasons"])
            if lacking := sorted(program for program, version in facts["programs"].items() if version is None):
                yield f"{name} lacks {', '.join(lacking)}; {self._provision()}"
            if missing := sorted(set(self.inventory.host(name).links) - facts["cards"].keys()):
                yield f"{name}: no card is known for link {', '.join(missing)}; {self._provision()}"
        builds = {name: facts["kernel"]["release"] for name, facts in self.facts.items()}
        if len({facts["build"] for facts in self.facts.values()}) > 1:
            yield f"the hosts run different kernels ({_listed(builds)}); {self._provision()}"

    def _provision(self) -> str:
        return f"./just lab provision {self.inventory.environment} --lab {self.inventory.folder.name}"

    def refuses(self, spec: RunSpec) -> tuple[str, ...]:
        """The declared settings that the hosts, their kernel or their cables cannot provide."""
        try:
            placement, laid = self._laid(spec)
        except RigError as error:
            placed: tuple[str, ...] = (str(error),)
        else:
            placed = (*self._refused_features(laid.spec), *self._refused_cables(spec, placement))
        return (
            *refused_features(self.name, spec),
            *refused_ccas(spec, self.capabilities().ccas),
            *self._refused_sysctls(spec),
            *placed,
        )

    def _laid(self, spec: RunSpec) -> tuple[Placement, Laid]:
        """Where the run's nodes are, and the run as it is built there. Raises RigError where the lab cannot have it."""
        placement = place(spec, self.inventory)
        laid = placement if isinstance(placement, str) else lay(spec, placement, self.inventory.own_us)
        if isinstance(placement, str) or isinstance(laid, str):
            raise RigError(str(laid))
        return placement, laid

    def _refused_features(self, spec: RunSpec) -> Iterator[str]:
        for feature in sorted(needed_features(spec)):
            lacking = [name for name, facts in self.facts.items() if feature not in facts["kernel"]["features"]]
            if lacking:
                _, option, use = FEATURES[feature]
                yield f"the kernel of {', '.join(lacking)} has no {feature} ({option}), which {use} needs"

    def _refused_sysctls(self, spec: RunSpec) -> Iterator[str]:
        for name in sorted({name for node in spec.nodes for name in node.sysctls} - GLOBAL_SYSCTLS):
            if lacking := [host for host, facts in self.facts.items() if name not in facts["sysctls"]]:
                yield f"the kernel of {', '.join(lacking)} has no sysctl {name}; {self._provision()} boots one with it"

    def _refused_cables(self, spec: RunSpec, placement: Placement) -> Iterator[str]:
        for number, cable in placement.cables.items():
            link = spec.links[number]
            for end in (link.a, link.b):
                host = placement.hosts[end.node]
                card = self.facts[host]["cards"].get(cable)
                if card is None:
                    continue  # the reason is among the capabilities'
                if card["max_mtu_bytes"] < link.mtu_bytes:
                    most = card["max_mtu_bytes"]
                    yield f"{host}: the card of {cable} has an MTU of at most {most} B, declared {link.mtu_bytes} B"
                rate = end.egress.rate_bps
                if rate and card["speed_bps"] and card["speed_bps"] < rate:
                    yield f"{host}: the card of {cable} has {card['speed_bps']} bit/s, declared {rate} bit/s"

    def run(self, spec: RunSpec, folder: Path) -> None:
        """Do one run on the hosts and write its raw files into ``folder``. Raises RigError; the hosts are as before."""
        placement, laid = self._laid(spec)
        names = placement.taking_part()
        hosts = [self.inventory.host(name) for name in names]
        with Connections(hosts, self.inventory.folder, agent_code()) as connections:
            self._require_kernel(connections.builds)
            _require_idle(connections)
            clocks = _read_clocks(connections, names)
            connections.send("prepare", {name: self._order(laid.spec, placement, name) for name in names})
            _require_declared(laid.spec, connections.gather("ready", READY_S))
            connections.send("paths", dict.fromkeys(names))
            trips_us = _joined_trips(connections.gather("paths", READY_S))
            _require_paths(laid, trips_us, placement)
            start_ns = time.time_ns() + START_AFTER_NS
            connections.send("start", {name: start_ns + clocks[name].offset_ns for name in names})
            connections.gather("measured", START_AFTER_NS / 1e9 + spec.end_us / 1e6 + MARGIN_S)
            connections.send("leave", dict.fromkeys(names))
            connections.gather("done", READY_S)
            clocks_after = _read_clocks(connections, names)
            with tempfile.TemporaryDirectory(prefix=".parts-", dir=folder) as scratch:
                parts = {name: _collected(connections, name, Path(scratch) / name) for name in names}
                join_parts(spec, parts, folder, laid.shares_us)
            connections.ask("end", RESTORED_S)
            (folder / "console.log").write_text(connections.consoles())
        _require_steady(clocks, clocks_after)
        told = {name: self._told(name, clocks[name], placement, trips_us) for name in names}
        (folder / "hosts.json").write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")

    def _require_kernel(self, builds: Mapping[str, str]) -> None:
        if others := [name for name, build in builds.items() if build != self.facts[name]["build"]]:
            raise RigError(
                "the host runs a different kernel than at the beginning of the study", where=", ".join(others)
            )

    def _order(self, spec: RunSpec, placement: Placement, host: str) -> dict[str, Any]:
        """The part of the run that a host's agent receives."""
        nodes = placement.nodes_of(host)
        cables = {}
        for number, cable in placement.cables.items():
            link = spec.links[number]
            ends = {placement.hosts[link.a.node], placement.hosts[link.b.node]}
            if host in ends:
                (peer,) = ends - {host}
                cables[number] = {"link": cable, "peer_address": self.facts[peer]["cards"][cable]["address"]}
        return {"spec": dataclasses.asdict(spec), "nodes": nodes, "cables": cables}

    def _told(
        self, name: str, clock: Clock, placement: Placement, trips_us: Mapping[int, int | None]
    ) -> dict[str, Any]:
        facts, links = self.facts[name], self.inventory.host(name).links
        trips = {cable: trips_us[number] for number, cable in placement.cables.items() if cable in links}
        return {
            "nodes": placement.nodes_of(name),
            "placement": self.inventory.host(name).placement,
            "kernel": facts["kernel"]["release"],
            "programs": facts["programs"],
            "cards": facts["cards"],
            "round_trips_us": trips,
            "clock_offset_us": clock.offset_ns // 1000,
            "clock_uncertainty_us": clock.uncertainty_ns // 1000,
        }


def open_backend(name: str, say: Say, lab: Path | None = None) -> HostsBackend:
    """The backend on the lab in the folder ``lab``. Raises StudyError on a wrong inventory, RigError on a lost host."""
    if lab is None:
        raise StudyError("backend hosts needs a lab", where="--lab", hint="./just lab list shows the labs")
    inventory = read_inventory(lab)
    say(f"asking {', '.join(host.name for host in inventory.hosts)}")
    with Connections(inventory.hosts, lab, agent_code()) as connections:
        facts = connections.ask("look")
        connections.ask("end")
    return HostsBackend(inventory, facts)


def _require_idle(connections: Connections) -> None:
    """Raises RigError when a host's CPUs stay busy with something else."""
    for _ in range(BUSY_TRIES):
        busy = {name: share for name, share in connections.ask("busy").items() if share > BUSY_LIMIT}
        if not busy:
            return
    shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in busy.items())
    raise RigError(f"hosts are busy before the run: {shares} of their CPUs, allowed {100 * BUSY_LIMIT:.0f} %")


def _read_clocks(connections: Connections, names: tuple[str, ...]) -> dict[str, Clock]:
    """Each host's clock. Raises RigError when one cannot be known well enough."""
    clocks = {name: read_clock(lambda name=name: connections.clock(name)) for name in names}  # type: ignore[misc]
    for name, clock in clocks.items():
        if clock.uncertainty_ns > CLOCK_LIMIT_NS:
            known, allowed = clock.uncertainty_ns / 1e6, CLOCK_LIMIT_NS / 1e6
            raise RigError(f"its clock is known only to {known:.1f} ms, allowed {allowed:.0f} ms", where=name)
    return clocks


def _require_declared(spec: RunSpec, ready: Mapping[str, Mapping[str, Any]]) -> None:
    """Raises RigError when a setting reads back otherwise, before anything is measured."""
    evidence = Evidence(spec, join_achieved(spec, list(ready.values())), [])
    if missed := [reason for gate in GATES_BEFORE for reason in gate(evidence)]:
        raise RigError("the hosts are not as declared: " + "; ".join(missed))


def _joined_trips(told: Mapping[str, Mapping[str, int | None]]) -> dict[int, int | None]:
    """The round trips that the hosts measured, by the number of the link."""
    return {int(number): trip for trips in told.values() for number, trip in trips.items()}


def _require_paths(laid: Laid, trips_us: Mapping[int, int | None], placement: Placement) -> None:
    """Raises RigError when a cable's own delay is not the declared one, before anything is measured."""
    if missed := list(missed_round_trips(laid.round_trips_us, trips_us, placement.cables)):
        hint = "the lab's variables state each link's round_trip_us; hosts.json of a run has what was measured"
        raise RigError("the paths are not as declared: " + "; ".join(missed), hint=hint)


def _require_steady(before: Mapping[str, Clock], after: Mapping[str, Clock]) -> None:
    """Raises RigError when a host's clock was set during the run: its time line has a jump."""
    for name, clock in before.items():
        moved = drift_ns(clock, after[name])
        if moved > CLOCK_LIMIT_NS:
            raise RigError(
                f"its clock moved by {moved / 1e6:.1f} ms against this machine's clock in the run", where=name
            )


def _collected(connections: Connections, name: str, target: Path) -> Path:
    """A host's raw files, unpacked into ``target``."""
    target.mkdir()
    unpacked = target.with_name(f"{name}.unpacked")
    unpacked.mkdir()
    with tempfile.TemporaryFile(dir=target.parent) as archive:
        connections.collect(name, archive)
        archive.seek(0)
        # The program refuses names that lead out of the folder; tarfile does only as of Python 3.11.4.
        command = ["tar", "--extract", "--gzip", "--no-same-owner", f"--directory={unpacked}"]
        done = subprocess.run(command, stdin=archive, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RigError(f"its files cannot be unpacked: {done.stderr.strip()}", where=name)
    collect(unpacked, target)
    return target


def _listed(items: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in items.items())


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, default=list).encode()).hexdigest()
