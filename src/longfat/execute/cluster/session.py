# SPDX-License-Identifier: Apache-2.0
"""The Dask scheduler of one command, its workers, and the pool of attempts on them; all speak TLS with one new key.

Owns the certificate, the command line of a worker, the content of a task, and the shutdown. Without the session's key
nobody reaches the scheduler or a worker.
"""

from __future__ import annotations

import logging
import math
import re
import shutil
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import dask
from distributed import Client, KilledWorker, SpecCluster
from distributed import Future as Task
from distributed.core import Status
from distributed.security import Security

from longfat.execute.attempt import Attempt, Outcome
from longfat.execute.cluster import kubernetes, ssh
from longfat.execute.cluster.places import Place, Scheduler, Slurm, Ssh
from longfat.execute.cluster.ssh import LOOPBACK, Tunnel
from longfat.execute.cluster.worker import QuietScheduler, execute_attempt
from longfat.execute.record.bundle import Bundle, RunFacts
from longfat.execute.record.merge import receive
from longfat.system.errors import RigError
from longfat.system.events import Event, EventSink, Kind, Level, discard

CONNECT_S = 20
DEATH_S = 60  # time until a worker without a scheduler ends
WORKER_CLASS = "longfat.execute.cluster.worker.QuietWorker"
WORKERS = 16  # workers on Slurm and Kubernetes without --jobs
BASE_BYTES = 512 << 20  # memory of a worker itself
SLOWER = 1.5  # allowed ratio of the time on a node to the estimate
AWAITED_S = 60.0  # for the first worker, without a word
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
            answers = Answers()
            yield Session(own.enter_context(Client(own.enter_context(_slurm(need, answers)))), answers.check)
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


@dataclass
class Answers:
    """Slurm's answers to the jobs: the number that it took, and its reason against the last one that it refused."""

    taken: int = 0
    refusal: str = ""

    def check(self) -> None:
        """Raise RigError if it refused every job: no worker would ever come."""
        if self.refusal and not self.taken:
            raise RigError(f"Slurm refuses the jobs: {self.refusal}", where="--on slurm")


@contextmanager
def _slurm(need: Need, answers: Answers) -> Iterator[SpecCluster]:
    """Start a job for each simultaneous run, and replace jobs that end too early."""
    if shutil.which("sbatch") is None:
        raise RigError("sbatch is missing: this machine does not belong to a Slurm cluster", where="--on")
    if re.search(r"[^\w./@+,=-]", str(need.folder), re.ASCII):
        raise RigError("Dask's script for Slurm takes only plain letters and digits in a path", where=str(need.folder))
    from dask_jobqueue.slurm import SLURMCluster, SLURMJob  # reads its configuration when it is imported

    class Job(SLURMJob):
        async def start(self) -> None:
            try:
                await super().start()  # type: ignore[no-untyped-call]
                answers.taken += 1
            except RuntimeError as error:  # Dask would print a traceback and go on without the job
                answers.refusal = " ".join(str(error).rpartition("stderr:\n")[2].split())
                self.status = Status.running  # it has no process, which Dask's cluster does not ask for

    minutes = math.ceil(need.limit_s / 60)
    need.folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="session-", dir=need.folder) as private,
        SLURMCluster(
            job_cls=Job,  # type: ignore[arg-type]
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


PATIENCE_S = 10.0
_Ended = tuple[Attempt, Task[Any], Future[Outcome]]


class Remote:
    """Attempts by the workers of a session; their records arrive below ``raw``.

    ``backend`` and ``settings`` open the backend there.
    """

    slots = sys.maxsize  # the scheduler queues the attempts that its workers cannot execute yet

    def __init__(
        self, session: Session, raw: Path, backend: str, settings: Mapping[str, Any], events: EventSink = discard
    ) -> None:
        self._session = session
        self._events = events
        self._awaited_from: float | None = time.monotonic()
        self._raw = raw
        self._backend = backend
        self._settings = settings
        self._tasks: set[Task[Any]] = set()  # Dask cancels a task without references
        self._closed = False
        self._ended: SimpleQueue[_Ended | None] = SimpleQueue()
        # A daemon thread, so that a connection lost in the middle of a result does not keep the process alive.
        self._receiver = threading.Thread(target=self._receive_all, daemon=True)
        self._receiver.start()

    def submit(self, attempt: Attempt) -> Future[Outcome]:
        """Hand an attempt to the scheduler."""
        received: Future[Outcome] = Future()
        # Keys of one prefix: the scheduler keeps such tasks until a worker is free.
        work = execute_attempt, attempt, self._backend, self._settings
        task = self._session.client.submit(*work, key=f"run-{uuid.uuid4().hex}")
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._ended.put((attempt, done, received)))
        return received

    def check(self) -> None:
        """Raise RigError if no worker is left; report once that none has come within a minute."""
        self._session.check()
        if self._awaited_from is not None and time.monotonic() - self._awaited_from > AWAITED_S:
            self._awaited_from = None
            if not self._session.client.scheduler_info()["workers"]:
                message = "no worker has come yet; the queue of the cluster (squeue, kubectl get pods) says why"
                self._events(Event(Kind.WORKERS_AWAITED, message, Level.WARNING))

    def close(self) -> None:
        """Stop receiving records; a record that is being written is completed."""
        self._closed = True
        self._ended.put(None)
        self._receiver.join(PATIENCE_S)

    def _receive_all(self) -> None:
        while (ended := self._ended.get()) is not None and not self._closed:
            attempt, task, received = ended
            try:
                received.set_result(self._outcome(attempt, task))
            except BaseException as error:
                received.set_exception(error)
            finally:
                self._tasks.discard(task)

    def _outcome(self, attempt: Attempt, task: Task[Any]) -> Outcome:
        """Return the outcome, once the record is in the results folder."""
        try:
            returned = task.result()
        except KilledWorker:
            return self._record_death(attempt)
        outcome, archive = _understood(returned, attempt.name)
        if archive is None:
            return outcome
        record = receive(archive, self._raw, attempt.name, attempt.spec.run_id)
        return Outcome(record.reason, outcome.wall_seconds)

    def _record_death(self, attempt: Attempt) -> Outcome:
        """Record a run as failed after several workers died during it."""
        reason = "its workers died, each during this run (killed, or out of memory)"
        now = datetime.now(UTC).isoformat(timespec="seconds")
        run_id = attempt.spec.run_id
        with Bundle(self._raw, attempt.name, attempt.spec) as bundle:
            bundle.commit(RunFacts(run_id, "failed", reason, attempt.number, self._backend, 0.0, now))
        return Outcome(reason, 0.0)


def _understood(returned: object, name: str) -> tuple[Outcome, bytes | None]:
    """Return the answer of a worker. Raises RigError if it is malformed."""
    if isinstance(returned, tuple) and len(returned) == 2:
        outcome, archive = returned
        plain = isinstance(outcome, Outcome) and isinstance(outcome.reason, str | None)
        if plain and isinstance(outcome.wall_seconds, int | float) and isinstance(archive, bytes | None):
            return outcome, archive
    raise RigError("a worker sent something other than the record of a run", where=name)


@contextmanager
def open_remote(
    place: Place, need: Need, raw: Path, backend: str, settings: Mapping[str, Any], events: EventSink
) -> Iterator[Remote]:
    """Open a pool at a place; its workers end with the block. Raises RigError if none can be started."""
    with (
        open_session(place, need, events) as session,
        closing(Remote(session, raw, backend, settings, events)) as remote,
    ):
        yield remote
