# SPDX-License-Identifier: Apache-2.0
"""The project's userland on the host's kernel: programs in their own namespaces and root. Needs root privileges.

Owns the mounts, and the start and end of such a program; longfat.guest is the program.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from longfat.backends.collect import read_text, tail
from longfat.system.errors import RigError
from longfat.system.parent import end_with_parent

# The mounts belong to the namespace and disappear with its last process. Nothing writes to the image itself.
ENTER = """\
set -eu
root=$1 task=$2 proc=$3
mount --bind "$root" "$task/root"
mount -o remount,bind,ro "$task/root"
cd "$task/root"
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs tmpfs run
if [ "$proc" = own ]; then mount -t proc proc proc; else mount --rbind /proc proc; fi
shift 3
while [ "$1" != -- ]; do
    if [ -d "$1" ]; then mkdir "run/$2"; else touch "run/$2"; fi
    mount --bind "$1" "run/$2"
    shift 2
done
shift
mount --bind "$task" task
mkdir run/machine
pivot_root . run/machine
exec chroot . sh -euc 'umount -l /run/machine; cd /; exec "$@"' sh "$@"
"""


def enclose(
    root: Path, task: Path, program: list[str], *, all_processes: bool = False, binds: Mapping[str, Path] | None = None
) -> list[str]:
    """Return the command that runs ``program`` in the userland ``root``, with the folder ``task`` as /task.

    Its processes are in a separate PID namespace and end with its first process; with ``all_processes`` they are in the
    machine's. ``binds`` has files and folders of the machine by their names under /run.
    """
    namespaces = ["--mount", "--ipc", "--uts", "--fork", "--kill-child"] + ([] if all_processes else ["--pid"])
    pairs = [word for name, path in (binds or {}).items() for word in (str(path), name)]
    places = [str(root), str(task), "machine" if all_processes else "own"]
    return ["unshare", *namespaces, "sh", "-c", ENTER, "sh", *places, *pairs, "--", *program]


def run_enclosed(command: list[str], task: Path, timeout_s: float) -> None:
    """Run a command of ``enclose``, with its output in ``task/console.log``.

    It ends with this process, even if that is killed. Raises RigError if it fails or takes longer than ``timeout_s``.
    """
    (task / "root").mkdir()
    console = task / "console.log"
    with console.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=end_with_parent,
            start_new_session=True,
        )
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            text = tail(read_text(console))
            raise RigError(f"the run has not ended {timeout_s:.0f} s after its start\n{text}") from error
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if process.returncode:
        raise RigError(f"the run ended with status {process.returncode}\n{tail(read_text(console))}")
