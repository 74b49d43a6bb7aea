# SPDX-License-Identifier: Apache-2.0
"""The Dask scheduler of one command, and the workers that are started for it; all speak TLS with one new key.

Owns the certificate, the command line of a worker, and the shutdown. Without the session's key nobody reaches the
scheduler or a worker.
"""

from __future__ import annotations

import logging
import math
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import dask
from distributed import Client, SpecCluster
from distributed.security import Security

from longfat.execute.cluster import kubernetes, ssh
from longfat.execute.cluster.places import Place, Scheduler, Slurm, Ssh
from longfat.execute.cluster.ssh import LOOPBACK, Tunnel
from longfat.execute.cluster.worker import QuietScheduler
from longfat.system.errors import RigError
from longfat.system.events import EventSink

CONNECT_S = 20
DEATH_S = 60  # time until a worker without a scheduler ends
WORKER_CLASS = "longfat.execute.cluster.worker.QuietWorker"
WORKERS = 16  # workers on Slurm and Kubernetes without --jobs
BASE_BYTES = 512 << 20  # memory of a worker itself
SLOWER = 1.5  # allowed ratio of the time on a node to the estimate
START_S = 600.0  # for the start of a worker, and for its last run


@dataclass(frozen=True)
class Need:
    """Requirements of the runs: their number, ``jobs`` at a time (None: the place's default), memory, and seconds.

    ``folder`` takes logs; Slurm's nodes see it.
    """

    folder: Path
    runs: int
    jobs: int | None
    memory_bytes: int
    seconds: float
    longest_s: float

    @property
    def workers(self) -> int:
        """Number of workers with one CPU each."""
        return min(self.jobs or WORKERS, self.runs)

    @property
    def limit_s(self) -> float:
        """Wall-time limit of a worker in a batch system: enough for its part of the runs."""
        return SLOWER * (self.seconds / self.workers + self.longest_s) + START_S


@dataclass
class Session:
    """A connection to a scheduler. ``check`` raises RigError if no worker is left that could execute a run."""

    client: Client
    check: Callable[[], None] = lambda: None


@contextmanager
def open_session(place: Place, need: Need, events: EventSink) -> Iterator[Session]:
    """Start workers at a place; they end with the block. Raises RigError if that is impossible."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # a lost worker is not an error here
    # A worker receives a run only after the end of its previous one.
    with dask.config.set({"distributed.scheduler.worker-saturation": 1.0}), ExitStack() as own:
        if isinstance(place, Scheduler):
            yield Session(own.enter_context(_client(place.address)))
            return
        if isinstance(place, Slurm):
            yield Session(own.enter_context(Client(own.enter_context(_slurm(need)))))
            return
        hosts = own.enter_context(ssh.Hosts(events))  # closed after the scheduler, whose end also ends the workers
        security = Security.temporary()
        options = {"protocol": "tls://", "security": security, "port": 0, "dashboard": False}
        options |= {"host": LOOPBACK} if isinstance(place, Ssh) else {}
        scheduler = {"cls": QuietScheduler, "options": options}
        cluster = own.enter_context(SpecCluster(scheduler=scheduler, workers={}, security=security))
        client = own.enter_context(Client(cluster))
        if isinstance(place, Ssh):
            threads = math.ceil(need.jobs / len(place.hosts)) if need.jobs else 0  # 0: as many as a host has CPUs
            port = int(cluster.scheduler_address.rpartition(":")[2])
            hosts.start(place.hosts, port, partial(_tunnelled, threads), pem_of(security))
            yield Session(client, hosts.check)
        else:
            pods = place, need.folder.parent.name, need.workers, need.memory_bytes + BASE_BYTES
            program = worker_words(cluster.scheduler_address, 1, kubernetes.PEM)
            own.enter_context(kubernetes.start_pods(place, kubernetes.objects(*pods, program, pem_of(security))))
            yield Session(client)


@contextmanager
def _slurm(need: Need) -> Iterator[SpecCluster]:
    """Start a job for each simultaneous run, and replace jobs that end too early."""
    if shutil.which("sbatch") is None:
        raise RigError("sbatch is missing: this machine does not belong to a Slurm cluster", where="--on")
    if re.search(r"[^\w./@+,=-]", str(need.folder), re.ASCII):
        raise RigError("Dask's script for Slurm takes only plain letters and digits in a path", where=str(need.folder))
    from dask_jobqueue.slurm import SLURMCluster  # reads its configuration when it is imported

    minutes = math.ceil(need.limit_s / 60)
    need.folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="session-", dir=need.folder) as private,
        SLURMCluster(
            cores=1,
            processes=1,
            memory=f"{need.memory_bytes + BASE_BYTES}B",
            walltime=f"{minutes // 60:02d}:{minutes % 60:02d}:00",
            job_name=f"longfat-{need.folder.parent.name}",
            nanny=False,
            death_timeout=str(DEATH_S),
            security=_in_file(Path(private) / "session.pem"),
            log_directory=str(need.folder),
            worker_extra_args=["--worker-class", WORKER_CLASS, "--no-dashboard", "--memory-limit", "0"],
            scheduler_cls=QuietScheduler,
            scheduler_options={"port": 0, "dashboard": False},
        ) as cluster,
    ):
        cluster.adapt(minimum_jobs=need.workers, maximum_jobs=need.workers)
        yield cluster


@contextmanager
def _client(address: str) -> Iterator[Client]:
    """Connect to a scheduler with the certificates of Dask's configuration (distributed.comm.tls)."""
    try:
        client = Client(address, timeout=CONNECT_S)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise RigError(
            f"the Dask scheduler does not answer: {error}",
            where=address,
            hint="DASK_DISTRIBUTED__COMM__TLS__CA_FILE and the variables next to it name the certificates",
        ) from error
    with client:
        yield client


def worker_words(address: str, threads: int, pem: str) -> list[str]:
    """Return the words after ``python`` that start a worker; ``pem`` is its file with key and certificate."""
    words = ["-m", "distributed.cli.dask_worker", address, "--worker-class", WORKER_CLASS, "--no-nanny"]
    words += ["--no-dashboard", "--nthreads", str(threads), "--memory-limit", "0", "--death-timeout", str(DEATH_S)]
    return [*words, "--protocol", "tls", "--tls-ca-file", pem, "--tls-cert", pem, "--tls-key", pem]


def _tunnelled(threads: int, tunnel: Tunnel, pem: str) -> list[str]:
    """Return the words of a worker behind a tunnel."""
    words = worker_words(f"tls://{LOOPBACK}:{tunnel.scheduler}", threads, pem)
    words += ["--listen-address", f"tls://{LOOPBACK}:{tunnel.worker}"]
    return [*words, "--contact-address", f"tls://{LOOPBACK}:{tunnel.contact}"]


def _in_file(pem: Path) -> Security:
    """Return a new key and certificate in a file that only this user reads."""
    pem.touch(0o600)
    pem.write_text(pem_of(Security.temporary()), encoding="ascii")
    roles = {f"tls_{role}_{part}": str(pem) for role in ("client", "scheduler", "worker") for part in ("cert", "key")}
    return Security(tls_ca_file=str(pem), require_encryption=True, **roles)


def pem_of(security: Security) -> str:
    """Return the session's key and certificate as one text."""
    parts = security.get_tls_config_for_role("worker")
    return f"{parts['key'].strip()}\n{parts['cert'].strip()}\n"
