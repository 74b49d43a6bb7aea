# SPDX-License-Identifier: Apache-2.0
"""What clusters are handed: the text of --on, the Job of Kubernetes, and what its pod executes, index by index."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from longfat.cluster.manifest import Pods, job_of, read_pods
from longfat.cluster.protocol import End, Work, ends_in
from typer.testing import CliRunner

from longfat.cli import app
from longfat.cluster import manifest
from longfat.cluster.places import open_cluster
from longfat.cluster.ssh import Host, Ssh
from longfat.errors import StudyError
from longfat.record.verify import find_records

ROOT = Path(__file__).parents[2]
PODS = Pods("registry/longfat:0.1.0", "results", "me/tiny", "lab")


def work(results: Path, **changes: object) -> Work:
    options = ("--shard", "auto", "--jobs", "1", "--until", "60s")
    plain = Work("longfat-tiny-1", results, options, results / "cluster", 2, 3, 1 << 30, 600.0, frozenset({"bad"}))
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pbs", "'pbs' is no cluster; allowed: slurm, ssh:HOST,HOST or kubernetes:image=IMAGE,claim=CLAIM"),
        ("slurm:x", "'slurm:x' is no cluster"),
        ("ssh:", "'ssh:' is no cluster"),
        ("ssh:a,a", "'a,a' does not name hosts, each once"),
        ("ssh:-oProxyCommand=x", "does not name hosts"),
        ("kubernetes", "image is missing; allowed: kubernetes:image=IMAGE,claim=CLAIM"),
        ("kubernetes:image=a,claim=b,x=c", "unknown key 'x'; allowed: kubernetes:image=IMAGE"),
    ],
)
def test_what_names_no_cluster_is_an_error_that_says_what_is_allowed(text: str, problem: str) -> None:
    with pytest.raises(StudyError) as raised:
        open_cluster(text)
    assert f"--on: {problem}" in str(raised.value) or problem in str(raised.value)


def test_hosts_are_in_their_own_checkouts_or_where_this_one_is() -> None:
    cluster = open_cluster("ssh:one,me@two:/srv/longfat")
    assert isinstance(cluster, Ssh)
    assert cluster.hosts == (Host("one", os.getcwd()), Host("me@two", "/srv/longfat")) and cluster.tasks == 2


# A task that records a run and then, until it is told to go on, nothing more.
TASK = """#!/bin/sh
for place; do case $place in /*) break ;; esac; done
mkdir -p "$place/raw/one" "$place/raw/.partial-two" && echo first >"$place/raw/one/run.json"
until [ -e "$place/../go" ]; do sleep 0.1; done
mkdir -p "$place/raw/two" "$place/twice/raw/one"
exit 4
"""


def test_what_a_host_records_is_fetched_while_its_task_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longfat.cluster.ssh.FETCH_S", 1)
    home, results = tmp_path / "home of a host", tmp_path / "results"
    (home / ".venv/bin").mkdir(parents=True)
    for name, text in (("ssh", f'#!/bin/sh\nHOME="{home}" exec sh -c "$2"\n'), (".venv/bin/python", TASK)):
        (home / name).write_text(text)
        (home / name).chmod(0o755)
    (results / "seals").mkdir(parents=True)
    (results / "lock.json").touch()
    cluster, task = Ssh((Host("far", str(home)),), (str(home / "ssh"),)), work(results, tasks=1)
    cluster.submit(task)

    def fetched() -> list[str]:
        (part,) = cluster.parts(task.name)
        return sorted(str(path.relative_to(part)) for path in part.glob("**/raw/*"))

    def wait(seen: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not seen():
            assert time.monotonic() < deadline, (task.folder / "task-1.log").read_text()
            time.sleep(0.05)

    wait(lambda: bool(cluster.parts(task.name)) and fetched() == ["raw/one"])
    assert not cluster.poll(task.name).ended
    (home / ".longfat-tasks/go").touch()
    wait(lambda: cluster.poll(task.name).ended)
    assert fetched() == ["raw/one", "raw/two", "twice/raw/one"]
    assert [(end.node, end.status) for end in ends_in(task.folder)] == [("far", 4)]


def test_pods_are_what_the_text_says() -> None:
    assert read_pods("image=registry/longfat:0.1.0,claim=results,path=me/tiny,namespace=lab") == PODS


def test_a_job_gives_each_pod_its_index_whole_cpus_and_the_volume(tmp_path: Path) -> None:
    job = job_of(work(tmp_path), PODS)
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 2, 2)
    assert {"name": "JOB_COMPLETIONS", "value": "2"} in container["env"]
    assert container["resources"]["requests"] == container["resources"]["limits"] == {"cpu": "3", "memory": "3072Mi"}
    assert container["volumeMounts"][0] == {"name": "results", "mountPath": "/results", "subPath": "me/tiny"}
    assert "task /results --shard auto" in container["command"][2]
    (rule,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert rule["matchExpressions"][0]["values"] == ["bad"]


def test_the_job_is_valid_by_the_published_api(tmp_path: Path) -> None:
    models = pytest.importorskip("kubernetes.client.models")

    def check(value: object, kind: str, place: str) -> None:
        if kind.startswith("List["):
            assert isinstance(value, list), place
            for item in value:
                check(item, kind[5:-1], f"{place}[]")
        elif kind.startswith("Dict["):
            assert isinstance(value, dict) and all(isinstance(item, str) for item in value.values()), place
        elif kind in ("str", "int", "bool"):
            assert type(value).__name__ == kind, place
        else:
            model = getattr(models, kind)
            assert isinstance(value, dict), place
            fields = {name: attribute for attribute, name in model.attribute_map.items()}
            assert {*value} <= {*fields}, place
            for name, item in value.items():
                check(item, model.openapi_types[fields[name]], f"{place}.{name}")

    job = job_of(work(tmp_path), PODS)
    check(job, "V1Job", "job")
    with pytest.raises(AssertionError, match="job"):
        check({**job, "spec": {**job["spec"], "completion": 2}}, "V1Job", "job")


def test_what_a_pod_executes_is_its_part_by_its_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "experiments/tiny"
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text((ROOT / "tests/unit/test_shards.py").read_text().split('"""')[3])
    monkeypatch.setattr(manifest, "ENTRY", f"{sys.executable} -m longfat")
    monkeypatch.setattr(manifest, "FOLDER", str(tmp_path / "results"))
    results = tmp_path / "results"
    line = ["run", "tiny", "--backend", "fake", "--results", str(results), "--until", "0.1s"]
    assert CliRunner().invoke(app, line, env={"LONGFAT_ROOT": str(tmp_path)}).exit_code == 75  # the lock is there
    (results / "cluster/ended").mkdir(parents=True)
    (container,) = job_of(work(results), PODS)["spec"]["template"]["spec"]["containers"]
    for index in ("0", "1"):
        own = {"JOB_COMPLETION_INDEX": index, "JOB_COMPLETIONS": "2", "NODE_NAME": f"node{index}"}
        done = subprocess.run(
            container["command"], env={**os.environ, "PYTHONPATH": f"{ROOT}/tests/fake:{ROOT}/src", **own}
        )
        assert done.returncode == 0
    assert [record.node for record in find_records(results / "raw").values()].count("node1") == 3
    assert [(end.task, end.node, end.status) for end in ends_in(results / "cluster")] == [
        ("0", "node0", 0),
        ("1", "node1", 0),
    ]
    assert isinstance(ends_in(results / "cluster")[0], End)


def test_a_plan_prints_what_a_cluster_would_be_handed_and_what_it_would_cost(tmp_path: Path) -> None:
    on = ["plan", "_smoke", "--results", str(tmp_path), "--on", "kubernetes:image=longfat:0.1.0,claim=results"]
    environment = {"LONGFAT_ROOT": str(ROOT), "COLUMNS": "100"}
    printed = CliRunner().invoke(app, [*on, "--tasks", "3", "--print"], env=environment)
    assert json.loads(printed.output)["spec"]["completions"] == 3
    cost = CliRunner().invoke(app, on, env=environment).output
    for line in ("what it takes on kubernetes", "CPUs of a task", "estimated core hours", "time limit of a task"):
        assert line in cost
