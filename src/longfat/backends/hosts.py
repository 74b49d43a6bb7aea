# SPDX-License-Identifier: Apache-2.0
"""Runs in real time on the hosts of a lab, over SSH: each end host is a machine, and links are cables.

Owns the abilities of a lab, and the steps of a run, from the first check to the restoration of the hosts.
``longfat.backends.testbed.agent`` acts on a host; ``longfat.backends.testbed.connect`` has the connections.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longfat.backends.collect import unpack
from longfat.backends.protocol import Capabilities, Feature, Traits
from longfat.backends.realtime import longest_s
from longfat.backends.registry import Say, refused_features
from longfat.backends.testbed.connect.answers import understood
from longfat.backends.testbed.connect.connection import Clock, Connections, drift_ns
from longfat.backends.testbed.connect.join import join_achieved, join_parts
from longfat.backends.testbed.connect.placement import BuiltRun, Placement, missed_round_trips, place, subtract_cables
from longfat.backends.testbed.inventory import WORKER, Inventory, read_inventory
from longfat.guest.ccas import refused_ccas
from longfat.guest.host_kernel import FEATURES, needed_features
from longfat.guest.sysctls import GLOBAL_SYSCTLS
from longfat.spec.gates import Evidence, Gate
from longfat.spec.gates.settings import mtu_holds, offloads_hold, queue_holds, rate_and_delay_hold, sysctls_hold
from longfat.spec.runspec import Ping, RunSpec, Udp, Web
from longfat.system.errors import RigError, StudyError
from longfat.system.identity import PACKAGE, code_identity, package_sources

MODULES = (
    *("__init__.py", "spec/__init__.py", "spec/plain.py", "spec/links.py", "spec/runspec.py", "spec/network.py"),
    *("system/__init__.py", "system/locks.py", "system/parent.py", "system/errors.py", "guest"),
    *("backends/__init__.py", "backends/testbed/__init__.py", "backends/testbed/agent"),
)
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time in the format


def agent_code() -> bytes:
    """Return the archive: the same bytes for the same sources."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in package_sources(MODULES):
            name = zipfile.ZipInfo(f"longfat/{path.relative_to(PACKAGE)}", EPOCH)
            archive.writestr(name, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def code_digest() -> str:
    """Return the identity of the sources in the archive: SHA-256 (hex) over their behaviour."""
    return code_identity(PACKAGE, package_sources(MODULES))


TRAITS = {
    "hosts": Traits(
        clock="real",
        can=frozenset(
            {
                *(Feature.TRANSFERS, Feature.CAPTURE, Feature.DROPS, Feature.RED, Feature.QUEUES),
                *(Feature.IMPAIRMENTS, Feature.RATES, Ping.what, Udp.what, Web.what),
            }
        ),
        lab=True,
        setup_s=6.0,
    )
}
READY_S = 180.0  # an emulated machine builds a network in about ten seconds
RESTORED_S = 60.0  # limit for the restoration of the hosts
START_AFTER_NS = 1_500_000_000  # from the readiness of all hosts: enough for the message to reach every host
CLOCK_LIMIT_NS = 10_000_000  # a tenth of the probes' interval

# Gates of settings, which are judged before the first packet.
GATES_BEFORE: tuple[Gate, ...] = (
    sysctls_hold,
    offloads_hold,
    mtu_holds,
    rate_and_delay_hold,
    queue_holds,
)


@dataclass(frozen=True)
class HostsBackend:
    """Runs on the hosts of ``inventory``. ``facts`` has each agent's report from the opening of the backend."""

    inventory: Inventory
    facts: Mapping[str, Mapping[str, Any]]

    name = "hosts"

    def pins(self) -> dict[str, str]:
        """Return the digests of the agent's code, the hosts' programs and the lab, and the hosts' common kernel."""
        first = next(iter(self.facts.values()))
        lab = (self.inventory.environment, [dataclasses.astuple(host)[:2] for host in self.inventory.hosts])
        programs = {name: facts["programs"] for name, facts in self.facts.items()}
        placements, own_us = [host.placement for host in self.inventory.hosts], dict(self.inventory.own_us)
        paths = [lab, placements, own_us, *([sorted(self.inventory.tunnels)] if self.inventory.tunnels else [])]
        return {
            "backend": self.name,
            "kernel": f"{first['kernel']['release']} {first['build']}",
            "image": _digest(programs),
            "code": f"{code_digest()} {self.inventory.environment} {_digest(paths)[:16]}",
        }

    def capabilities(self) -> Capabilities:
        """Return the algorithms that all hosts have, and the deficiencies of every host."""
        ccas = (frozenset(facts["kernel"]["ccas"]) for facts in self.facts.values())
        return Capabilities(frozenset.intersection(*ccas), tuple(self._reasons()))

    def _reasons(self) -> Iterator[str]:
        for name, facts in self.facts.items():
            yield from (f"{name}: {reason}" for reason in facts["kernel"]["reasons"])
            if lacking := sorted(program for program, version in facts["programs"].items() if version is None):
                yield f"{name} lacks {', '.join(lacking)}; {self._provision()}"
            if missing := sorted(set(self.inventory.host(name).links) - facts["cards"].keys()):
                yield f"{name}: no card is known for link {', '.join(missing)}; {self._provision()}"
        if len({facts["build"] for facts in self.facts.values()}) > 1:
            listed = ", ".join(f"{name} {facts['kernel']['release']}" for name, facts in self.facts.items())
            yield f"the hosts run different kernels ({listed}); {self._provision()}"

    def _provision(self) -> str:
        return f"./just lab provision {self.inventory.environment} --lab {self.inventory.folder.name}"

    def refuses(self, spec: RunSpec) -> tuple[str, ...]:
        """Return the declared settings beyond the hosts, their kernel or their cables."""
        try:
            placement, built = self._place(spec)
        except RigError as error:
            placed: tuple[str, ...] = (str(error),)
        else:
            placed = (*self._refused_features(built.spec), *self._refused_cables(spec, placement))
        return (
            *refused_features(self.name, spec),
            *refused_ccas(spec, self.capabilities().ccas),
            *self._refused_sysctls(spec),
            *placed,
        )

    def _place(self, spec: RunSpec) -> tuple[Placement, BuiltRun]:
        """Return the placement of the run's nodes, and the run as built there. Raises RigError if there is none."""
        placement = place(spec, self.inventory)
        return placement, subtract_cables(spec, placement, self.inventory.own_us)

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
                    continue  # ``capabilities`` gives the reason
                if card["max_mtu_bytes"] < link.mtu_bytes:
                    most = card["max_mtu_bytes"]
                    yield f"{host}: the card of {cable} has an MTU of at most {most} B, declared {link.mtu_bytes} B"
                if card["pause"] and cable not in self.inventory.tunnels:
                    name = card["base"] or card["card"]
                    yield f"{host}: the card of {cable} has pause frames on: ethtool -A {name} rx off tx off"
                rate = end.egress.rate_bps
                if rate and card["speed_bps"] and card["speed_bps"] < rate:
                    yield f"{host}: the card of {cable} has {card['speed_bps']} bit/s, declared {rate} bit/s"

    def run(self, spec: RunSpec, folder: Path) -> None:
        """Execute one run on the hosts, restore them, and write the raw files into ``folder``. Raises RigError."""
        placement, built = self._place(spec)
        with tempfile.TemporaryDirectory(prefix=".parts-", dir=folder) as scratch:
            archives = {name: Path(scratch) / f"{name}.tar" for name in placement.taking_part()}
            hosts_used = self._measure(built, placement, archives, folder / "console.log")
            join_parts(spec, {name: _unpacked(path) for name, path in archives.items()}, folder, built.shares_us)
        (folder / "hosts.json").write_text(json.dumps(hosts_used, indent=1, sort_keys=True) + "\n")

    def _measure(
        self, built: BuiltRun, placement: Placement, archives: Mapping[str, Path], console: Path
    ) -> dict[str, Any]:
        """Execute one run, fetch each host's archive, and restore the hosts; return their description."""
        names = tuple(archives)
        hosts = [self.inventory.host(name) for name in names]
        with Connections(hosts, self.inventory.folder, agent_code()) as connections:
            self._require_kernel(connections.builds)
            clocks = _read_clocks(connections, names)
            connections.send("prepare", {name: self._order(built.spec, placement, name) for name in names})
            _require_declared(built.spec, connections.gather("ready", READY_S))
            connections.send("paths", dict.fromkeys(names))
            by_host = connections.gather("paths", READY_S)
            trips_us = {int(number): trip for trips in by_host.values() for number, trip in trips.items()}
            _require_paths(built, trips_us, placement)
            start_ns = time.time_ns() + START_AFTER_NS
            connections.send("start", {name: start_ns + clocks[name].offset_ns for name in names})
            connections.gather("measured", START_AFTER_NS / 1e9 + longest_s(built.spec))
            connections.send("leave", dict.fromkeys(names))
            connections.gather("done", longest_s(built.spec))
            clocks_after = _read_clocks(connections, names)
            for name, archive in archives.items():
                with archive.open("wb") as file:
                    connections.collect(name, file)
            connections.ask("end", RESTORED_S)
            console.write_text(connections.consoles())
        _require_steady(clocks, clocks_after)
        return {name: self._describe(name, clocks[name], placement, trips_us) for name in names}

    def _require_kernel(self, builds: Mapping[str, str]) -> None:
        if others := [name for name, build in builds.items() if build != self.facts[name]["build"]]:
            raise RigError(
                "the host runs a different kernel than at the beginning of the study", where=", ".join(others)
            )

    def _order(self, spec: RunSpec, placement: Placement, host: str) -> dict[str, Any]:
        """Return the part of the run for a host's agent."""
        nodes = placement.nodes_of(host)
        cables = {}
        for number, cable in placement.cables.items():
            link = spec.links[number]
            ends = {placement.hosts[link.a.node], placement.hosts[link.b.node]}
            if host in ends:
                (peer,) = ends - {host}
                cables[number] = {"link": cable, "peer_address": self.facts[peer]["cards"][cable]["address"]}
        return {"spec": dataclasses.asdict(spec), "nodes": nodes, "cables": cables}

    def _describe(
        self, name: str, clock: Clock, placement: Placement, trips_us: Mapping[int, int | None]
    ) -> dict[str, Any]:
        facts, links = self.facts[name], self.inventory.host(name).links
        trips = {cable: trips_us.get(number) for number, cable in placement.cables.items() if cable in links}
        return {
            "nodes": placement.nodes_of(name),
            "placement": self.inventory.host(name).placement,
            "kernel": facts["kernel"]["release"],
            "programs": facts["programs"],
            "cards": facts["cards"],
            "round_trips_us": trips,
            "tunnels": sorted(self.inventory.tunnels & set(links)),
            "clock_offset_us": clock.offset_ns // 1000,
            "clock_uncertainty_us": clock.uncertainty_ns // 1000,
        }


def open_backend(name: str, say: Say, lab: Path | None = None) -> HostsBackend:
    """Open the lab in the folder ``lab``. Raises StudyError on a wrong inventory, RigError on a lost host."""
    if lab is None:
        raise StudyError("backend hosts needs a lab", where="--on", hint="`./just lab list` shows the labs")
    inventory = read_inventory(lab)
    if all(host.role == WORKER for host in inventory.hosts):
        message, hint = "this lab has workers, and no hosts with links", "without --backend, they execute the runs"
        raise StudyError(message, where=f"--on {lab.name}", hint=f"{hint} in virtual time")
    say(f"asking {', '.join(host.name for host in inventory.hosts)}")
    if inventory.tunnels:
        say(f"tunnels over the hosts' own network, not cables: {', '.join(sorted(inventory.tunnels))}")
    with Connections(inventory.hosts, lab, agent_code()) as connections:
        facts = connections.ask("look")
        _read_clocks(connections, tuple(facts))  # an error appears now instead of after the preparation
        connections.ask("end")
    return HostsBackend(inventory, facts)


def _read_clocks(connections: Connections, names: tuple[str, ...]) -> dict[str, Clock]:
    """Return each host's clock. Raises RigError if a clock is too uncertain."""
    clocks = {name: connections.clock(name) for name in names}
    for name, clock in clocks.items():
        if clock.uncertainty_ns > CLOCK_LIMIT_NS:
            known, allowed = clock.uncertainty_ns / 1e6, CLOCK_LIMIT_NS / 1e6
            message = f"its clock is uncertain by {known:.1f} ms, half of the round trip; allowed {allowed:.0f} ms"
            raise RigError(message, where=name, hint="start the command near the hosts, such as on the router by ssh")
    return clocks


def _require_declared(spec: RunSpec, ready: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise RigError if a setting that was read back differs from the declaration, before the measurement."""
    with understood(", ".join(ready)):
        evidence = Evidence(spec, join_achieved(spec, list(ready.values())), [])
        missed = [reason for gate in GATES_BEFORE for reason in gate(evidence)]
    if missed:
        raise RigError("the hosts are not as declared: " + "; ".join(missed))


def _require_paths(built: BuiltRun, trips_us: Mapping[int, int | None], placement: Placement) -> None:
    """Raise RigError if no echo returns, or a cable's own delay is not as declared, before the measurement."""
    if silent := [cable for number, cable in placement.cables.items() if trips_us.get(number) is None]:
        message = f"no echo returns over {', '.join(silent)}"
        raise RigError(message, hint="check the cables, and the VLANs of the switch")
    if missed := list(missed_round_trips(built.round_trips_us, trips_us, placement.cables)):
        hint = "the lab's variables state each link's round_trip_us; hosts.json of a run has the measured value"
        raise RigError("the paths are not as declared: " + "; ".join(missed), hint=hint)


def _require_steady(before: Mapping[str, Clock], after: Mapping[str, Clock]) -> None:
    """Raise RigError if a host's clock was set during the run, so that its time line has a jump."""
    for name, clock in before.items():
        moved = drift_ns(clock, after[name])
        if moved > CLOCK_LIMIT_NS:
            raise RigError(f"its clock moved by {moved / 1e6:.1f} ms from this machine's clock in the run", where=name)


def _unpacked(archive: Path) -> Path:
    """Unpack a host's raw files next to their archive, which is removed; return their folder."""
    target = archive.with_suffix("")
    with archive.open("rb") as file:
        unpack(file, target)
    archive.unlink()
    return target


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, default=list).encode()).hexdigest()
