# SPDX-License-Identifier: Apache-2.0
"""Studies on hosts of a lab: what they need is printed, what no host can do is left out, and the rest is executed."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from longfat.backends import hosts
from longfat.backends.registry import traits_of
from longfat.backends.testbed.inventory import Host, Inventory
from longfat.cli.lab_needs import needs
from longfat.cli.study import Choices, find_study, resolve
from longfat.guest.host_kernel import FEATURES
from longfat.plan import Plan
from longfat.spec.runspec import RunSpec, Web
from longfat.study.catalog.ccas import CCAS

STUDIES = ("_smoke", "kelly-2003", "sandia-2003")
WHOLE = "_smoke"  # needs nothing that hosts lack
TRIANGLE = Counter({"receiver 1 to sender 1": 1, "receiver 1 to router": 1, "router to sender 1": 1})


@cache
def plan_on(study: str, backend: str) -> Plan:
    return resolve(find_study(study), Choices(), {"backend": backend})


def laboratory(cables: Counter[str], specs: list[RunSpec]) -> hosts.HostsBackend:
    """A lab with these cables, whose hosts have every ability that a kernel can have."""
    links: dict[str, list[str]] = {}
    for number, ends in enumerate(cables.elements()):
        for end in ends.split(" to "):
            links.setdefault(end, []).append(f"cable{number}")
    made = [Host(end.replace(" ", ""), end.split()[0], end, 22, "root", tuple(own), "") for end, own in links.items()]
    inventory = Inventory(Path("lab"), "existing", tuple(sorted(made, key=lambda host: host.name)))
    kernel = {"release": "6", "reasons": [], "features": list(FEATURES), "ccas": [*CCAS]}
    sysctls = sorted({name for spec in specs for node in spec.nodes for name in node.sysctls})
    card = {"max_mtu_bytes": 65535, "speed_bps": None, "address": ""}
    facts = {"build": "", "programs": {}, "kernel": kernel, "sysctls": sysctls}
    return hosts.HostsBackend(inventory, {one.name: {**facts, "cards": dict.fromkeys(one.links, card)} for one in made})


@pytest.mark.parametrize("name", STUDIES)
def test_a_lab_with_the_printed_hosts_and_cables_executes_every_planned_run(name: str) -> None:
    plan = plan_on(name, "hosts")
    specs = [run.spec for run in plan.runs]
    roles, cables = needs(plan)
    backend = laboratory(cables, specs)
    assert {reason for spec in specs for reason in backend.refuses(spec)} == set()
    assert name != WHOLE or cables == TRIANGLE
    there = Counter(host.role for host in backend.inventory.hosts)
    assert all(there[role] == count for role, count in roles.items())


@pytest.mark.parametrize("backend", ["hosts", "mininet"])
def test_points_beyond_a_backend_in_real_time_are_left_out_and_the_others_are_all_there(backend: str) -> None:
    for name in STUDIES:
        plan, whole = plan_on(name, backend), plan_on(name, "virtual")
        lacking = plan.excluded
        assert len({run.scenario for run in plan.runs}) + len(lacking) == len({run.scenario for run in whole.runs})
        assert all(Web.what not in one.reason or Web.what not in traits_of(backend).can for one in lacking)
        if name == WHOLE:
            assert not lacking
