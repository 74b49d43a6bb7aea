# SPDX-License-Identifier: Apache-2.0
"""Parts of the package, what each owns and what it may import. tests/unit/test_imports.py enforces the table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A package or module: ``may`` names what it may import from this package, the leaves and itself apart.

    A ``leaf`` may be imported by every part that the standard library is not enough for. What ``travels`` runs in the
    guest or on the hosts of a lab: it may import only what ``may`` names, and ``foreign`` packages that are there.
    """

    owns: str
    may: frozenset[str] = frozenset()
    leaf: bool = False
    travels: bool = False
    free: bool = False
    foreign: frozenset[str] = frozenset()


def _part(owns: str, *may: str) -> Part:
    return Part(owns, frozenset(may))


def _leaf(owns: str, *may: str) -> Part:
    return Part(owns, frozenset(may), leaf=True)


PARTS: dict[str, Part] = {
    "cli": Part("the command line, a module for each command", free=True),
    "shell": _part(
        "a shell in a guest with the network of a run up, whose clock stands still between commands",
        "backends.virtual",
        "backends.guest_process",
        "guest",
    ),
    "bench": Part("the speed of runs, next to simulators and the machine's own kernel", free=True),
    "manifest": _part(
        "the closed schema of study.yaml, with line numbers; it reports every problem at once",
        "catalog",
        "queues",
        "traffic",
    ),
    "queues": _part(
        "kinds of queue, one class each: its keys of a manifest, what the kernel is told, what it has to read back",
    ),
    "traffic": _part(
        "kinds of traffic, one module each: its keys of a manifest, its record, words, cost, gates and tables",
        "catalog",
        "queues",
    ),
    "catalog": _part("the names that a manifest may use: algorithms, stack profiles, queues, offloads, kernels"),
    "plan": _part(
        "sweeps, seeds, topologies, the lock, the estimate; pure",
        "manifest",
        "traffic",
        "catalog",
        "backends.protocol",
        "backends.registry",
    ),
    "execute": _part(
        "the execution of many runs: threads around the guests, retries, progress, a clean stop",
        "guest.counters",
        "backends.protocol",
        "record",
        "plan.model",
    ),
    "cluster": _part(
        "runs on other machines, by workers of Dask that end with the command",
        "backends.protocol",
        "backends.registry",
        "execute",
        "record",
    ),
    "record": _part("raw run folders: write once, verify, set aside"),
    "dataset": _part(
        "tables from raw runs, validated by the gates", "record", "plan.lockfile", "plan.model", "traffic"
    ),
    "metrics": _part("numbers read from a run, each one registered function; values over chosen runs", "dataset"),
    "relations": _part("claims in the language of relations, and their verdicts", "metrics", "dataset", "manifest"),
    "figures": _part(
        "figures and tables, one module for each kind",
        "relations",
        "metrics",
        "dataset",
        "manifest",
        "plan.model",
        "traffic",
    ),
    "studies": _part(
        "a study's folder, opened: its files, read once, and the experiments behind its artifacts",
        "figures",
        "relations",
        "metrics",
        "manifest",
    ),
    "data": _part(
        "a study's results opened for notebooks and programs: tidy frames, figures drawn when asked for",
        "studies",
        "figures",
        "relations",
        "dataset",
        "manifest",
        "plan.lockfile",
        "plan.model",
    ),
    "report": _part(
        "the report of a study, the page of all studies, the committed reference, the execution of notebooks",
        "data",
        "evidence",
        "studies",
        "figures",
        "relations",
        "dataset",
        "manifest",
        "plan.lockfile",
        "plan.model",
        "record.bundle",
        "record.made_on",
        "traffic",
    ),
    "card": _part(
        "report cards: rows, numbers from a dataset, the page of a card, the matrix of several",
        "studies",
        "relations",
        "metrics",
        "catalog",
        "plan.model",
        "report.page",
    ),
    "crate": _part(
        "a study's results as a package for an archive: its files, their description, the artifact appendix",
        "studies",
        "figures.drawing",
        "relations",
        "report.page",
        "dataset",
        "manifest",
        "plan",
    ),
    "evidence": _part(
        "values of runs kept in the repository: rows, baselines, verdicts from them alone",
        "studies",
        "figures",
        "relations",
        "metrics",
        "dataset",
        "manifest",
        "plan",
        "record",
        "kernel_check",
        "backends.registry",
    ),
    "kernel_check": _part("the kernel regression check's reference and the comparison with it"),
    "backends": _part(
        "the contract, the traits, and where a run happens",
        "guest",
        "builds",
        "catalog.kernels",
        "catalog.ccas",
        "catalog.sysctls",
        "testbed.connect",
        "testbed.inventory",
    ),
    "testbed.connect": _part(
        "the hosts of a lab as seen from here: their names and roles, connections, clocks, the merging of their parts",
        "guest",
        "testbed.folder",
        "testbed.inventory",
    ),
    "testbed.provision": _part(
        "machines by Terraform, prepared by Ansible: a folder for each lab", "builds", "testbed.folder"
    ),
    "testbed.inventory": _part("the hosts of a lab", "testbed.folder"),
    "testbed.folder": _part("the folder of a lab: its place, and the names of its files"),
    "builds": _part("kernel, image, container image and machines' disk in the cache folder", "catalog.kernels"),
    "testbed.agent": Part(
        "the code on a host of a lab: sent there over SSH, leaves nothing behind",
        frozenset({"guest", "runspec", "locks", "parent"}),
        travels=True,
        foreign=frozenset({"mininet"}),
    ),
    "guest": Part(
        "the code that runs next to the packets: Mininet, tuning, iperf2, web traffic, probes, captures",
        frozenset({"runspec", "network", "parent"}),
        travels=True,
        foreign=frozenset({"docker", "mininet", "pycurl"}),
    ),
    "gates": _leaf(
        "whether the declared settings of a run were achieved, and the reasons where not", "network", "runspec"
    ),
    "network": _leaf("ports, addresses, routes and lengths of frames that follow from a RunSpec", "runspec"),
    "runspec": _leaf("everything that can change the outcome of one run, and nothing that cannot", "links", "plain"),
    "links": _leaf("the links of a RunSpec: what an interface does with what it sends", "plain"),
    "plain": _leaf("dataclasses as plain data for JSON, and back"),
    "store": _leaf("folders that are made once and kept: draft, lock, rename", "errors", "files", "locks"),
    "cache": _leaf("the place of the cache folder", "errors"),
    "files": _leaf("files that are complete at every read, and flushed to the disk"),
    "checksums": _leaf("checksums of the files that each step of a study made and used", "errors", "files"),
    "scratch": _leaf("temporary folders, removed even after a kill", "locks", "processes"),
    "locks": _leaf("locks on files and folders that one process at a time holds"),
    "processes": _leaf("whether a process still runs, and the end of children and of those that killed ones left"),
    "tools": _leaf("the environment of programs that are started: no variable of a user's decides for them; git"),
    "parent": _leaf("processes that end with the process that started them"),
    "schema": Part(
        "reading of YAML files by closed models, with line numbers and all problems at once",
        frozenset({"errors", "units"}),
        leaf=True,
        foreign=frozenset({"pydantic", "pydantic_core", "yaml"}),
    ),
    "units": _leaf("typed quantities and their text", "errors"),
    "identity": _leaf("digests of what code does; the release that a kernel is built of"),
    "events": _leaf("the single stream of events, for the console and the results folder"),
    "errors": _leaf("the single family of errors, each with its exit status"),
}
LEAVES = frozenset(name for name, part in PARTS.items() if part.leaf)


def allowed(name: str) -> frozenset[str]:
    """Every module or package of this one that the part may import from, itself included."""
    part = PARTS[name]
    closed = part.leaf or part.travels
    return part.may | {name} | (frozenset() if closed else LEAVES)
