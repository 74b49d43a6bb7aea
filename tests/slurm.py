# SPDX-License-Identifier: Apache-2.0
"""Slurm for tests: a controller and node daemons on this machine, over loopback, which are gone afterwards.

Owns their configuration, start and end, and what happens where there is no Slurm. Must not assert anything. The nodes
are two daemons with names of their own; "the power of a node fails" is the end of one, with all that it runs.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from needs import comes_true, end_session, free_ports, refuse, require_packages

PATIENCE_S = 30.0
NODES = ("node1", "node2")

CONFIGURATION = """
ClusterName=longfat
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmdParameters=config_overrides
AuthInfo=socket={folder}/munge/socket,cred_expire=5
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
TaskProlog={folder}/prolog
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,sched_min_interval=100000,batch_sched_delay=0,requeue_delay=1
SlurmdTimeout=6
SlurmctldTimeout=10
KillWait=5
InactiveLimit=0
ReturnToService=2
MinJobAge=300
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@dataclass
class Slurm:
    """A running cluster. ``environment`` makes its commands find it; ``daemons`` are those of the nodes."""

    folder: Path
    environment: dict[str, str]
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __call__(self, *command: str) -> str:
        """The output of a command of Slurm. Raises RuntimeError with what it said unless it ends well."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{command} ended with status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def on_node(self, node: str, **environment: str) -> None:
        """From now on all tasks on a node have these variables."""
        lines = "".join(f'echo "export {name}={value}"\n' for name, value in environment.items())
        (self.folder / f"prolog-{node}").write_text(lines)

    def start(self, node: str) -> None:
        """Start the daemon of a node."""
        self.daemons[node] = _start(["slurmd", "-D", "-N", node], self.environment, self.folder / f"{node}.out")

    def power_fails(self, node: str) -> None:
        """Kill the daemon of a node, and everything that it has started."""
        daemon = self.daemons.pop(node)
        spool = str(self.folder / f"spool-{node}")
        for process in (daemon.pid, *_steps(spool, node)):
            with suppress(psutil.NoSuchProcess):
                root = psutil.Process(process)
                for each in (root, *root.children(recursive=True)):
                    each.kill()
        daemon.wait()

    def is_idle(self) -> bool:
        """Whether all nodes are up and have nothing to do."""
        with suppress(RuntimeError):  # the controller is not there yet
            return set(self("sinfo", "--noheader", "--Node", "--format=%t").split()) == {"idle"}
        return False

    def end(self) -> None:
        """Kill the daemons of all nodes."""
        for node in tuple(self.daemons):
            self.power_fails(node)

    def wait(self, seen: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
        """Wait until something is so. Raises RuntimeError with the logs' ends where it never is."""
        if not comes_true(seen, seconds):
            logs = sorted(self.folder.glob("*.log"))
            raise RuntimeError("\n".join(f"{log.name}: {log.read_text(errors='replace')[-1500:]}" for log in logs))


@contextmanager
def slurm() -> Iterator[Slurm]:
    """A cluster of two nodes with one CPU each. Skips the test, or fails it where LONGFAT_REQUIRE lists ``slurm``."""
    require_packages("slurm", "packages-cluster.txt")
    # Not below pytest's folders: a socket's path has at most 107 characters.
    with tempfile.TemporaryDirectory(prefix="slurm-") as name, ExitStack() as own:
        folder = Path(name)
        (folder / "munge").mkdir(mode=0o700)
        (folder / "munge/key").write_bytes(secrets.token_bytes(64))
        (folder / "munge/key").chmod(0o600)
        (folder / "state").mkdir()
        ports = free_ports(1 + len(NODES))
        nodes = "\n".join(
            f"NodeName={node} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={port} CPUs=1 "
            f"RealMemory=100000 State=UNKNOWN"
            for node, port in zip(NODES, ports[1:], strict=True)
        )
        text = CONFIGURATION.format(folder=folder, port=ports[0], user=pwd.getpwuid(os.geteuid()).pw_name, nodes=nodes)
        (folder / "slurm.conf").write_text(text)
        prolog = folder / "prolog"
        prolog.write_text(f'#!/bin/sh\nsh "{folder}/prolog-$SLURMD_NODENAME"\n')
        prolog.chmod(0o755)
        path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
        cluster = Slurm(folder, {**os.environ, "PATH": path, "SLURM_CONF": str(folder / "slurm.conf")})
        munge = folder / "munge"
        options = [f"--{what}-file={munge}/{what}" for what in ("key", "log", "pid", "seed")]
        commands = [["munged", "--foreground", "--force", f"--socket={munge}/socket", *options], ["slurmctld", "-D"]]
        try:
            for command in commands:
                process = _start(command, cluster.environment, folder / f"{command[0]}.out")
                own.callback(end_session, process)
                if command[0] == "munged":
                    cluster.wait((munge / "socket").exists)
            own.callback(cluster.end)
            for node in NODES:
                cluster.on_node(node)
                cluster.start(node)
            cluster.wait(cluster.is_idle)
        except RuntimeError as error:
            refuse("slurm", f"Slurm does not start here: {error}")
        yield cluster
        with suppress(RuntimeError):
            cluster("scancel", "--me")


def _start(command: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    program = shutil.which(command[0], path=environment["PATH"]) or command[0]
    with log.open("ab") as output:
        return subprocess.Popen(
            [program, *command[1:]],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _steps(spool: str, node: str) -> list[int]:
    """The processes that look after the tasks of a node; they are children of nobody."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (path / "environ").read_bytes()
            line = (path / "cmdline").read_bytes()
            if line.startswith(b"slurmstepd") and f"SLURMD_NODENAME={node}\0".encode() in words:
                found.append(int(path.name))
    return found
