# SPDX-License-Identifier: Apache-2.0
"""The project's userland on the host's own kernel: programs in separate namespaces and with a separate root.

Owns the mounts and how such a program is started, watched and ended. The program's work is described in longfat.guest.
Needs root.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from longfat.backends.collect import read_text
from longfat.errors import RigError
from longfat.parent import end_with_parent

TAIL_LINES = 20

# Mounts are the namespace's own: they are gone with its last process. The image itself is never written to.
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


def enclosed(
    root: Path, task: Path, program: list[str], *, all_processes: bool = False, shown: Mapping[str, Path] | None = None
) -> list[str]:
    """The command that runs ``program`` in the userland under ``root``, with the folder ``task`` as its /task.

    Its processes are in a separate PID namespace and end with the first of them; with ``all_processes`` they are
    among the machine's instead. ``shown`` has files and folders of the machine by the name they get under /run.
    """
    namespaces = ["--mount", "--ipc", "--uts", "--fork", "--kill-child"] + ([] if all_processes else ["--pid"])
    binds = [word for name, path in (shown or {}).items() for word in (str(path), name)]
    places = [str(root), str(task), "machine" if all_processes else "own"]
    return ["unshare", *namespaces, "sh", "-c", ENTER, "sh", *places, *binds, "--", *program]


def run_enclosed(command: list[str], task: Path, timeout_s: float) -> None:
    """Run what ``enclosed`` made; its output goes to ``console.log`` in ``task``.

    Ends with this process, however this process ends. Raises RigError when it fails or takes longer than ``timeout_s``.
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
            raise RigError(f"the run has not ended {timeout_s:.0f} s after its start\n{tail(console)}") from error
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if process.returncode:
        raise RigError(f"the run ended with status {process.returncode}\n{tail(console)}")


def tail(console: Path) -> str:
    """The last lines of the console."""
    return "\n".join(read_text(console).splitlines()[-TAIL_LINES:])
