# SPDX-License-Identifier: Apache-2.0
"""A cluster's tasks are followed, started again and judged by what they record; the cluster here is invented."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conftest import plan_of

from longfat.cluster.follow import Follower
from longfat.cluster.protocol import Standing, Work, ends_in
from longfat.cluster.size import size_of
from longfat.cluster.slurm import script_of
from longfat.cluster.twice import compare_nodes, sample
from longfat.errors import RigError
from longfat.events import Event
from longfat.execute.results import Results, open_results
from longfat.plan.model import PlannedRun
from longfat.record.bundle import Bundle, RunFacts, run_folder_name
from longfat.record.verify import Record, find_records

RUNS = plan_of(12)


def record(raw: Path, run: PlannedRun, node: str, *, fault: str | None = None, text: str = "") -> None:
    """What a task leaves of a run, in place of a failed record."""
    name = run_folder_name(run.scenario, run.repetition, run.run_id)
    if (raw / name).exists():
        (raw / ".superseded").mkdir(exist_ok=True)
        (raw / name).rename(raw / ".superseded" / f"{name}.{len(list((raw / '.superseded').iterdir()))}")
    facts = RunFacts(run.run_id, "failed" if fault else "ok", fault, 1, "fake", 1.0, "2026-01-01T00:00:00Z", node)
    with Bundle(raw, name, run.spec) as bundle:
        (bundle.folder / "flows.json").write_text(f"[]{text}")
        bundle.commit(facts)


@dataclass
class Invented:
    """A cluster whose tasks do at once what ``do`` says of the round, and then have ended."""

    raw: Path
    do: Callable[[Invented, Work, int], None]
    works: list[Work] = field(default_factory=list)
    cancelled: int = 0

    name = "invented"
    tasks = None

    def text(self, work: Work) -> str:
        return ""

    def submit(self, work: Work) -> None:
        self.works.append(work)
        self.do(self, work, len(self.works))

    def poll(self, name: str) -> Standing:
        return Standing(0, 0)

    def cancel(self, name: str) -> None:
        self.cancelled += 1

    def nodes(self) -> frozenset[str]:
        return frozenset({"node1", "node2"})

    def parts(self, name: str) -> tuple[Path, ...]:
        return ()

    def ends(self, work: Work, task: str, node: str, status: int) -> None:
        (work.folder / "ended").mkdir(parents=True, exist_ok=True)
        (work.folder / "ended" / task).write_text(f"{node} {status} 5\n")
        (work.folder / f"task-{task}.log").write_text("error: no such kernel\n")


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Results]:
    monkeypatch.setattr("longfat.cluster.follow.LOOK_S", 0.01)
    with open_results(tmp_path / "results", "cluster") as own:
        yield own


def follow(cluster: Invented, results: Results) -> tuple[dict[str, Record], list[str]]:
    said: list[str] = []

    def hear(event: Event) -> None:
        said.append(event.message)

    def work_for(left: object, excluded: frozenset[str]) -> Work:
        return Work("name", results.path, (), results.path / "cluster", 2, 1, 1 << 30, 600.0, excluded)

    follower = Follower(cluster, "name", RUNS, results, hear, work_for, results.path / "cluster")
    return follower.all(), said


def test_what_tasks_did_not_come_to_is_submitted_again_and_nothing_is_when_all_is_recorded(results: Results) -> None:
    def half(cluster: Invented, work: Work, number: int) -> None:
        for run in RUNS[6 * (number - 1) : 6 * number]:
            record(results.raw, run, "node1")

    cluster = Invented(results.raw, half)
    records, said = follow(cluster, results)
    assert {*records} == {run.run_id for run in RUNS} and len(cluster.works) == 2
    assert "12 runs left; submitted to invented: 2 tasks of 1 CPUs, for 10 min at the most" in said
    assert sum(text.startswith("one-flow.r") for text in said) == 12
    again = Invented(results.raw, half)
    assert follow(again, results)[0] == records and again.works == []


def test_a_node_on_which_runs_fail_or_tasks_break_gets_no_more_while_another_does_well(results: Results) -> None:
    def work(cluster: Invented, work: Work, number: int) -> None:
        for run in RUNS[:6]:
            record(results.raw, run, "node1")
        for run in RUNS[6:9]:
            record(results.raw, run, "node1" if number > 1 else "node2", fault=None if number > 1 else "it crashed")
        for run in RUNS[9:] if number > 1 else ():
            record(results.raw, run, "node1")
        if number == 1:
            cluster.ends(work, "3", "node3", 127)

    cluster = Invented(results.raw, work)
    records, said = follow(cluster, results)
    assert all(one.status == "ok" for one in records.values()) and len(records) == 12
    assert cluster.works[1].exclude == {"node2", "node3"}
    warning = next(text for text in said if "gets no more runs" in text)
    assert warning.startswith("node2, node3 gets no more runs, while others execute theirs: task 3 on node3 ended with")
    assert "error: no such kernel" in warning and "failed: it crashed" in warning


def test_a_run_that_fails_wherever_it_is_executed_is_given_up(results: Results) -> None:
    def work(cluster: Invented, work: Work, number: int) -> None:
        for run in RUNS:
            if number == 1 or run is RUNS[0]:
                record(results.raw, run, f"node{1 + RUNS.index(run) % 2}", fault="never" if run is RUNS[0] else None)

    cluster = Invented(results.raw, work)
    records, _ = follow(cluster, results)
    assert [one.run_id for one in records.values() if one.status == "failed"] == [RUNS[0].run_id]
    assert len(cluster.works) == 2


def test_tasks_that_end_without_a_record_are_an_error_with_what_they_said(results: Results) -> None:
    cluster = Invented(results.raw, lambda cluster, work, number: cluster.ends(work, "1", "node1", 3))
    with pytest.raises(
        RigError, match=r"no run was recorded: task 1 on node1 ended with status 3\n  error: no such ker"
    ):
        follow(cluster, results)
    assert [(end.task, end.status) for end in ends_in(results.path / "cluster")] == [("1", 3)]


def test_a_sample_is_of_each_node_in_turn_and_one_in_a_hundred(tmp_path: Path) -> None:
    records = {run.run_id: Record(tmp_path, run.run_id, "ok", None, 1, f"node{i % 3}") for i, run in enumerate(RUNS)}
    chosen = sample(records, frozenset({"node0", "node1"}))
    assert [records[run_id].node for run_id in chosen] == ["node0", "node1", "node0", "node1", "node0"]
    many = {f"{number:064x}": Record(tmp_path, "", "ok", None, 1, "a") for number in range(2_001)}
    assert len(sample(many, frozenset({"a"}))) == 21


@pytest.mark.parametrize("at_fault", ["node1", "node2"])
def test_of_two_nodes_that_differ_a_third_execution_names_the_one_at_fault(results: Results, at_fault: str) -> None:
    def wrong(node: str) -> str:
        return " " if node == at_fault else ""

    for number, run in enumerate(RUNS):
        node = f"node{1 + number % 2}"
        record(results.raw, run, node, text=wrong(node))
    asked: list[str] = []

    def again(groups: dict[frozenset[str], list[str]], into: str) -> None:
        asked.append(into)
        for excluded, ids in groups.items():
            node = min({"node1", "node2", "here"} - excluded, key=["node1", "node2", "here"].index)
            for run in RUNS:
                if run.run_id in ids:
                    record(results.path / into / "raw", run, node, text=wrong(node))

    said: list[str] = []
    both = frozenset({"node1", "node2"})
    assert compare_nodes(results, find_records(results.raw), both, again, lambda e: said.append(e.message)) == {
        at_fault
    }
    assert asked == ["twice", "thrice"]
    assert f"{at_fault} measures what other nodes do not: its 6 runs are set aside" in said
    assert {one.node for one in find_records(results.raw).values()} == both - {at_fault}
    assert len(list((results.raw / ".distrusted").iterdir())) == 6


def test_a_size_has_no_more_tasks_than_runs_and_room_for_the_longest_part() -> None:
    size = size_of(RUNS, RUNS, lambda spec: 3600.0, cpus=2)
    assert (size.tasks, size.cpus) == (12, 2)
    assert size.limit_s == 3600 * 1.5 + 300
    assert size_of(RUNS, RUNS[:3], lambda spec: 1.0, tasks=50).tasks == 3


def test_an_array_is_requeued_warned_before_its_limit_and_kept_from_nodes(tmp_path: Path) -> None:
    folder = tmp_path / "50% full"
    work = Work(
        "longfat-x", tmp_path / "a b", ("--shard", "auto"), folder, 7, 2, 1 << 30, 600.0, frozenset({"n2", "n1"})
    )
    lines = script_of(work).splitlines()
    for option in ("array=1-7", "cpus-per-task=2", "mem-per-cpu=1024M", "time=10", "requeue", "signal=B:TERM@60"):
        assert f"#SBATCH --{option}" in lines
    assert "#SBATCH --exclude=n1,n2" in lines
    assert f"{sys.executable} -P -m longfat task '{tmp_path}/a b' --shard auto &" in lines
    assert f"#SBATCH --output='{tmp_path}/50%% full/task-%a.log'" in lines
