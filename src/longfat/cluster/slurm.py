# SPDX-License-Identifier: Apache-2.0
"""Slurm: the tasks are an array of sbatch(1), which sees the folders of this machine at the same paths.

What a site wants besides (a partition, an account) is told by the variables that sbatch reads: SBATCH_PARTITION,
SBATCH_ACCOUNT and so on. Must not know runs.
"""

from __future__ import annotations

import math
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from longfat.cluster.protocol import Standing, Work, checkout
from longfat.errors import RigError

PROGRAM = (sys.executable, "-P", "-m", "longfat")
NOTICE_S = 60  # between the signal and the limit
PASSED_ON = ("LONGFAT_ROOT", "LONGFAT_CACHE", "PYTHONPATH")
_WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}

# A shell that waits while its program ends after SIGTERM, and says how it ended. The program gets the signal alone:
# a task that is killed without notice leaves nothing, and its runs are free for the next one.
_SCRIPT = """\
#!/bin/sh
{options}
{exports}
cd {root} || exit 3
begun=$(date +%s)
{command} &
program=$!
trap 'kill -TERM $program' TERM INT
wait $program
status=$?
while kill -0 $program 2>/dev/null; do
    wait $program
    status=$?
done
draft={folder}/ended/.$SLURM_ARRAY_TASK_ID
echo "$SLURMD_NODENAME $status $(($(date +%s) - begun))" >"$draft" && mv "$draft" {folder}/ended/$SLURM_ARRAY_TASK_ID
exit $status
"""


class Slurm:
    """The cluster that sbatch(1) on this machine submits to."""

    name = "slurm"
    tasks = None

    def text(self, work: Work) -> str:
        """The array's script."""
        return script_of(work)

    def submit(self, work: Work) -> None:
        """Write the array's script into the work's folder and submit it."""
        (work.folder / "ended").mkdir(parents=True, exist_ok=True)
        script = work.folder / "array.sbatch"
        script.write_text(script_of(work), encoding="utf-8")
        _call("sbatch", "--parsable", str(script))

    def poll(self, name: str) -> Standing:
        """Count the tasks of this user's arrays of that name."""
        user = str(os.geteuid())
        lines = _call("squeue", "--noheader", "--array", "--user", user, "--name", name, "--format=%T %r").splitlines()
        states = [line.split(maxsplit=1) for line in lines if line.strip()]
        waiting = [words[-1] for words in states if words[0] in _WAITING]
        return Standing(len(waiting), len(states) - len(waiting), ", ".join(sorted(set(waiting))))

    def cancel(self, name: str) -> None:
        """End all of them, those that run too."""
        _call("scancel", "--user", str(os.geteuid()), "--name", name)

    def nodes(self) -> frozenset[str]:
        """Those that answer the controller."""
        return frozenset(_call("sinfo", "--noheader", "--Node", "--responding", "--format=%N").split())

    def parts(self, name: str) -> Sequence[Path]:
        """None: the tasks share the results folder."""
        return ()


def script_of(work: Work) -> str:
    """The text for sbatch(1)."""
    options = {
        "job-name": work.name,
        "array": f"1-{work.tasks}",
        "cpus-per-task": work.cpus,
        "mem-per-cpu": f"{math.ceil(work.memory_bytes / (1 << 20))}M",
        "time": math.ceil(work.limit_s / 60),
        "requeue": None,
        "signal": f"B:TERM@{NOTICE_S}",
        "open-mode": "append",
        "output": shlex.quote(f"{str(work.folder).replace('%', '%%')}/task-%a.log"),
        **({"exclude": ",".join(sorted(work.exclude))} if work.exclude else {}),
    }
    # Of a node's own setting and the one here, the node's counts.
    here = {name: shlex.quote(os.environ[name]) for name in PASSED_ON if name in os.environ}
    return _SCRIPT.format(
        options="\n".join(f"#SBATCH --{key}{'' if value is None else f'={value}'}" for key, value in options.items()),
        exports="\n".join(f"{name}=${{{name}-{value}}}; export {name}" for name, value in here.items()),
        root=shlex.quote(checkout()),
        command=shlex.join((*PROGRAM, "task", str(work.results), *work.options)),
        folder=shlex.quote(str(work.folder)),
    )


def _call(*command: str) -> str:
    """What a command of Slurm prints. Raises RigError with what it said unless it ends well."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise RigError(
            f"there is no {command[0]} here", hint="start this on a machine that submits to the cluster"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise RigError(f"{command[0]} has not answered for two minutes") from error
    if done.returncode:
        raise RigError(f"{command[0]} refuses: {(done.stderr or done.stdout).strip()}")
    return done.stdout
