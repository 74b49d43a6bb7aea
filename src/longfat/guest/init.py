# SPDX-License-Identifier: Apache-2.0
"""First process of the guest: mounts, one run, power off.

The root is the image, read-only. /code has this package, /task the run's spec and results, both by hostfs.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import traceback
from pathlib import Path

RB_POWER_OFF = 0x4321FEDC  # linux/reboot.h
MCL_FUTURE = 2  # asm-generic/mman.h
TASK = Path("/task")
MOUNTS = (
    ("proc", "/proc", "proc", ""),
    ("sysfs", "/sys", "sysfs", ""),
    ("tmpfs", "/tmp", "tmpfs", "mode=1777,size=75%"),  # for the captures until the end of the flows
    ("tmpfs", "/run", "tmpfs", ""),
    ("devtmpfs", "/dev", "devtmpfs", ""),
    ("devpts", "/dev/pts", "devpts", ""),
)

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Mount the file systems, execute the spec in the task folder, and power off in any case."""
    # Fill memory when it is mapped, not page by page: each page fault in the guest costs as much as a system call.
    _libc.mlockall(MCL_FUTURE)
    try:
        for source, target, kind, options in MOUNTS:
            if target == "/dev/pts":
                os.makedirs(target, exist_ok=True)
            mount(source, target, kind, options)
        # From here on every message of the kernel reaches the console, also from a study's own C file.
        Path("/proc/sys/kernel/printk").write_text("8")
        mount("none", str(TASK), "hostfs", "/")
        execute()
    except BaseException:
        traceback.print_exc()
    finally:
        power_off()


def power_off() -> None:
    """Flush all output, and end the guest."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.sync()
    _libc.reboot(RB_POWER_OFF)


def mount(source: str, target: str, kind: str, options: str) -> None:
    """Call mount(2). Raises OSError."""
    if _libc.mount(source.encode(), target.encode(), kind.encode(), 0, options.encode()):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), target)


def execute() -> None:
    """Execute /task/spec.json, and write the results to /task/raw."""
    # Imported late: an error in the guest's modules must still reach the console and power off.
    from longfat.guest.network import Namespaces
    from longfat.guest.run import run
    from longfat.guest.sysctls import write_sysctl
    from longfat.spec.runspec import RunSpec

    spec = RunSpec.from_json((TASK / "spec.json").read_text())
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # at least two for each flow
    pages = spec.memory_bytes // os.sysconf("SC_PAGE_SIZE") // 2
    write_sysctl("net.ipv4.tcp_mem", f"{pages} {pages} {pages}")
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/tmp", LC_ALL="C", TERM="dumb")
    scratch = Path("/tmp/run")
    scratch.mkdir()
    run(spec, TASK / "raw", scratch, Namespaces(wires=True))
