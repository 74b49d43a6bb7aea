# SPDX-License-Identifier: Apache-2.0
"""Runs on other machines: what --on may name, what the machines are given, and what is accepted from them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import dask
import pytest
from conftest import plan_of
from distributed import Client, LocalCluster
from distributed.security import Security
from fake_backend import FakeBackend

from longfat.execute.attempt import Attempt, Outcome
from longfat.execute.cluster import kubernetes
from longfat.execute.cluster.places import CHECKOUT, Host, Kubernetes, Place, Scheduler, Slurm, Ssh, read_place
from longfat.execute.cluster.session import Need, Remote, Session, open_session, pem_of, worker_words
from longfat.execute.cluster.worker import execute_attempt
from longfat.execute.record.merge import pack, receive
from longfat.execute.record.verify import find_records
from longfat.execute.results import open_results
from longfat.execute.study import Summary, execute
from longfat.system.errors import RecordError, RigError, StudyError
from longfat.system.events import Event, Kind, discard

NEED = Need(Path("/nowhere"), 3, None, 0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("slurm", Slurm()),
        ("ssh:a,me@b:/srv/longfat", Ssh((Host("a", str(CHECKOUT)), Host("me@b", "/srv/longfat")))),
        ("kubernetes:image=x/y:1,namespace=lab", Kubernetes("x/y:1", "lab")),
        ("tls://host:8786", Scheduler("tls://host:8786")),
    ],
)
def test_a_place_is_read(text: str, place: Place) -> None:
    assert read_place(text) == place


@pytest.mark.parametrize(
    "text",
    ["", "pbs", "slurm:x", "ssh:", "ssh:a,a", "ssh:-oProxyCommand=x", "kubernetes", "kubernetes:image=", "tcp://a:1",
     "kubernetes:image=a,claim=b"],
)  # fmt: skip
def test_any_other_place_is_refused(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        read_place(text)
    assert caught.value.where == "--on"


@pytest.mark.parametrize("name", ["my results", "x\ny", "a;b", "$HOME", "été"])
def test_a_path_that_the_script_of_slurm_would_misread_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: "/usr/bin/sbatch")
    need = replace(NEED, folder=Path("/srv") / name)
    with pytest.raises(RigError) as caught, open_session(Slurm(), need, discard):
        pass
    assert caught.value.where == f"/srv/{name}"


def test_kubernetes_gets_a_secret_with_the_key_and_a_job_of_workers() -> None:
    security = Security.temporary()
    words = worker_words("tls://10.0.0.1:4000", 1, kubernetes.PEM)
    pods = Kubernetes("registry/longfat:1"), "Trinh_2004", 5, 700 << 20
    secret, job = kubernetes.objects(*pods, words, pem_of(security))["items"]
    assert secret["metadata"]["name"] == job["metadata"]["name"] and secret["kind"] == "Secret"
    assert secret["stringData"]["session.pem"].count("PRIVATE KEY") == 2
    assert job["spec"]["parallelism"] == 5 and "PRIVATE KEY" not in json.dumps(job)
    pod = job["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["seccompProfile"]
    (container,) = pod["containers"]
    assert container["command"][3:6] == ["distributed.cli.dask_worker", "tls://10.0.0.1:4000", "--worker-class"]
    assert container["resources"]["limits"] == {"cpu": "1", "memory": "700Mi"}
    (volume,) = (one for one in pod["volumes"] if "secret" in one)
    assert volume["secret"]["secretName"] == secret["metadata"]["name"]
    assert f"{container['volumeMounts'][0]['mountPath']}/session.pem" == kubernetes.PEM


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """The address of a scheduler with TLS and one worker; the configuration has its certificate."""
    security, pem = Security.temporary(), tmp_path / "session.pem"
    pem.write_text(pem_of(security))
    tls = {f"{role}.{part}": str(pem) for role in ("client", "scheduler", "worker") for part in ("cert", "key")}
    names = {f"distributed.comm.tls.{name}": path for name, path in {"ca-file": str(pem), **tls}.items()}
    with (
        dask.config.set(names),
        LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, security=security, protocol="tls://",
            host="127.0.0.1", dashboard_address=None,
        ) as cluster,
    ):  # fmt: skip
        yield cluster.scheduler_address


def test_a_scheduler_elsewhere_executes_the_runs(scheduler: str, tmp_path: Path) -> None:
    plan = plan_of(3)

    def run(backend: FakeBackend) -> Summary:
        with (
            open_results(tmp_path / "results") as results,
            open_session(Scheduler(scheduler), NEED, discard) as session,
        ):
            pool = closing(Remote(session, results.raw, "fake", {"faults": backend.faults}))
            return execute(plan, backend, results, jobs=1, elsewhere=pool)

    assert run(FakeBackend(faults={plan[1].run_id: "crash"})) == Summary(reused=0, executed=2, failed=1)
    assert run(FakeBackend()) == Summary(reused=2, executed=1, failed=0)
    records = find_records(tmp_path / "results/raw")
    assert {record.status for record in records.values()} == {"ok"} and len(records) == 3


@pytest.mark.parametrize(("workers", "told"), [({}, 1), ({"tls://10.0.0.1:4000": {}}, 0)])
def test_it_is_told_once_that_no_worker_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: dict[str, object], told: int
) -> None:
    monkeypatch.setattr("longfat.execute.cluster.session.AWAITED_S", -1.0)
    client, events = SimpleNamespace(scheduler_info=lambda: {"workers": workers}), list[Event]()
    with closing(Remote(Session(client), tmp_path, "fake", {}, events.append)) as pool:
        pool.check()
        pool.check()
    assert [event.kind for event in events] == [Kind.WORKERS_AWAITED] * told


def test_a_scheduler_is_closed_to_whoever_lacks_the_key(scheduler: str) -> None:
    for address in (scheduler, scheduler.replace("tls", "tcp")):
        with pytest.raises((OSError, RuntimeError)):
            Client(address, security=Security.temporary(), timeout=2)


def execute_first(**settings: object) -> tuple[Outcome, bytes | None]:
    return execute_attempt(Attempt("one-flow.r01.x", plan_of(1)[0].spec, 1, last=False), "fake", settings)


def test_a_worker_of_another_version_refuses_the_run_and_names_itself() -> None:
    with pytest.raises(RigError, match="digests that differ") as caught:
        execute_first(achieved_rate_factor=0.9)
    assert caught.value.where


def test_a_record_arrives_as_it_was_sealed(tmp_path: Path) -> None:
    _, archive = execute_first()
    assert archive is not None
    record = receive(archive, tmp_path, "a", plan_of(1)[0].run_id)
    assert pack(record.folder) == archive and record.status == "ok"
    with pytest.raises(RecordError):
        receive(archive, tmp_path, "a", plan_of(1)[0].run_id)  # a record is never overwritten
    with pytest.raises(RecordError):
        receive(archive, tmp_path, "b", plan_of(2)[1].run_id)
    with pytest.raises(RecordError):
        receive(archive.replace(b'"status": "ok"', b'"status": "OK"'), tmp_path, "b", plan_of(1)[0].run_id)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
