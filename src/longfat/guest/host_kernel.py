# SPDX-License-Identifier: Apache-2.0
"""Abilities of this machine's kernel, and reasons against runs beyond them.

Each ability is tried in a temporary network namespace. Changes nothing on the machine: a value that all namespaces
share is read, never set.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from longfat.guest.ccas import offered_ccas, refused_ccas
from longfat.guest.counters import pressure_us
from longfat.guest.sysctls import GLOBAL_SYSCTLS, sysctl_path
from longfat.spec.runspec import RunSpec

INSTEAD = "; backend virtual has it"
RED = "limit 200000 min 20000 max 60000 avpkt 1500 burst 20 bandwidth 8mbit probability 0.02"
FEATURES = {
    "veth": (("ip", "link add veth0 type veth peer name veth1"), "CONFIG_VETH", "every link"),
    "tbf": (("tc", "qdisc add dev lo root tbf rate 8mbit burst 3000 limit 3000"), "CONFIG_NET_SCH_TBF", "a rate"),
    "netem": (("tc", "qdisc add dev lo root netem delay 1ms"), "CONFIG_NET_SCH_NETEM", "a delay"),
    "pfifo": (("tc", "qdisc add dev lo root pfifo limit 10"), "CONFIG_NET_SCHED", "a queue of kind pfifo"),
    "bfifo": (("tc", "qdisc add dev lo root bfifo limit 10000"), "CONFIG_NET_SCHED", "a queue of kind bfifo"),
    "red": (("tc", f"qdisc add dev lo root red {RED}"), "CONFIG_NET_SCH_RED", "a queue of kind red"),
    **{
        kind: (
            ("tc", f"qdisc add dev lo root {kind}"),
            f"CONFIG_NET_SCH_{kind.upper()}",
            f"a queue of kind {kind}",
        )
        for kind in ("codel", "fq_codel", "fq", "pie", "fq_pie", "cake", "sfq", "dualpi2")
    },
    "police": (
        ("tc", "qdisc add dev lo clsact\nfilter add dev lo egress matchall action police rate 8mbit burst 3000 drop"),
        "CONFIG_NET_CLS_MATCHALL and CONFIG_NET_ACT_POLICE",
        "a policer",
    ),
    "matchall": (
        ("tc", "qdisc add dev lo clsact\nfilter add dev lo egress matchall action pass random determ drop 100"),
        "CONFIG_NET_CLS_MATCHALL and CONFIG_NET_ACT_GACT with CONFIG_GACT_PROB",
        "a deliberate drop",
    ),
}


@dataclass(frozen=True)
class HostKernel:
    """The kernel's algorithms and FEATURES by name. ``reasons`` are against any run."""

    release: str
    ccas: frozenset[str]
    features: frozenset[str]
    reasons: tuple[str, ...]

    def refuses(self, spec: RunSpec) -> tuple[str, ...]:
        """Return the reasons against the run as declared."""
        return (
            *refused_ccas(spec, self.ccas),
            *self._missing_features(spec),
            *_refused_sysctls(spec),
        )

    def _missing_features(self, spec: RunSpec) -> Iterator[str]:
        for name in sorted(needed_features(spec) - self.features):
            _, option, use = FEATURES[name]
            yield f"this machine's kernel has no {name} ({option}), which {use} needs{INSTEAD}"


def ask_kernel(root: Path) -> HostKernel:
    """Try the running kernel with the tools of the userland ``root``."""
    reasons = []
    if os.geteuid():
        reasons.append("it needs root; backend virtual does not")
    if shutil.which("unshare") is None:
        reasons.append("it needs the program unshare (package util-linux)")
    elif subprocess.run(["unshare", "--mount", "--pid", "--net", "--fork", "true"], capture_output=True).returncode:
        reasons.append(
            "namespaces are not permitted here, as in a container without privileges; backend virtual needs none"
        )
    if pressure_us() is None:
        reasons.append("this machine's kernel has no /proc/pressure/cpu (CONFIG_PSI): lack of CPU would not be noticed")
    features = frozenset() if reasons else frozenset(name for name in FEATURES if _has(root, name))
    return HostKernel(platform.release(), host_ccas(), features, tuple(reasons))


def needed_features(spec: RunSpec) -> set[str]:
    """Return the names of the FEATURES that a run uses."""
    needed = {"veth"}
    for link in spec.links:
        for egress in (link.a.egress, link.b.egress):
            needed |= {"tbf", egress.queue.kind} if egress.rate_bps is not None else set()
            needed |= {"netem"} if egress.delay_us else set()
            needed |= {"matchall"} if egress.drops else set()
            needed |= {"police"} if egress.policer else set()
    return needed & FEATURES.keys()


def host_ccas() -> frozenset[str]:
    """Return the algorithms that the kernel has, or loads from a module on demand."""
    found = (re.match(r"tcp_(\w+)\.ko", path.name) for path in modules_folder().glob("tcp_*"))
    return frozenset(offered_ccas()) | ({match[1] for match in found if match} - {"diag"})


def modules_folder() -> Path:
    """Return the folder of the running kernel's IPv4 modules, which need not exist."""
    return Path("/lib/modules") / platform.release() / "kernel/net/ipv4"


def _has(root: Path, feature: str) -> bool:
    """Try the feature's commands in a separate network namespace."""
    (program, lines), _, _ = FEATURES[feature]
    command = ["unshare", "--net", "chroot", str(root), program, "-batch", "-"]
    done = subprocess.run(command, input=lines + "\n", capture_output=True, text=True, check=False)
    return done.returncode == 0


def _refused_sysctls(spec: RunSpec) -> Iterator[str]:
    """Yield the sysctls that the kernel lacks, and machine-wide values that differ from the declared values."""
    wanted = sorted({item for node in spec.nodes for item in node.sysctls.items()})
    for name, value in wanted:
        path = sysctl_path(name)
        if not path.exists():
            yield f"this machine's kernel has no sysctl {name}, which may be one of the project's (kernels/){INSTEAD}"
        elif name in GLOBAL_SYSCTLS and path.read_text().split() != value.split():
            found = " ".join(path.read_text().split())
            yield f"{name} is {found} for the whole machine, the run needs {value}; as root: sysctl -w {name}={value}"
