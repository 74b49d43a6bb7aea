# SPDX-License-Identifier: Apache-2.0
"""Planning: order, seeds, profiles, choice, the resolution of every setting into a RunSpec, and the expanded plan."""

from pathlib import Path

import pytest
import yaml
from fabricated_results import write_study
from manifests import keys_of, refused, study_of
from tiny_study import call

from longfat.plan import Plan, build_plan
from longfat.plan.build import scenario_slug
from longfat.plan.settings import Setting, expanded, settings
from longfat.study.load import load_study
from longfat.study.study import Study
from longfat.system.errors import StudyError

STUDY = """\
format: 2
study: example
title: An example
stack: linux-2.4
seed: 7
algorithms:
  standard: {cca: reno}
  scalable: {cca: scalable, a: 0.02}
hosts: {mtu: 9000 B, txqueuelen: 100}
experiments:
  - id: first
    topology: {kind: delay, rate: 1 Gbit/s, rtt: 30 ms}
    hosts: {mtu: 1500 B, sysctls: {net.ipv4.tcp_sack: 0}}
    flows:
      - {name: f1, from: client1, to: server, algorithm: "${algorithm}", window: "${window}", duration: 10 s,
         start: 1 s, start_jitter: 1 ms}
    sweep:
      product: {algorithm: [standard, scalable], window: [512 KiB, 1 MiB, 2 MiB]}
    repetitions: 4
  - id: second
    topology: {kind: delay, rate: 1 Gbit/s, rtt: 30 ms}
    hosts: {mtu: 1500 B, sysctls: {net.ipv4.tcp_sack: 0}}
    flows:
      - {name: f1, from: client1, to: server, algorithm: standard, window: 1 MiB, duration: 10 s,
         start: 1 s, start_jitter: 1 ms}
    repetitions: 4
profiles:
  quick:
    repetitions: 3
    keep: {window: [1 MiB, 2 MiB]}
    experiments: {second: {repetitions: 1, duration: 2 s}}
  smoke: {repetitions: 9, duration: 60 s}
"""


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return study_of(tmp_path, STUDY)


def paper(study: Study, seed: int | None = None) -> Plan:
    return build_plan(study, profile="paper", seed=seed, pins={"kernel": "k1"})


def test_another_seed_gives_another_order_and_other_starts(study: Study) -> None:
    one, other = paper(study), paper(study, seed=8)
    assert [run.scenario for run in one.runs] != [run.scenario for run in other.runs]
    assert {run.run_id for run in one.runs}.isdisjoint(run.run_id for run in other.runs)
    assert other.seed == 8


def test_runs_stand_in_complete_blocks_of_repetitions(study: Study) -> None:
    runs = paper(study).runs
    assert [run.repetition for run in runs] == [1] * 7 + [2] * 7 + [3] * 7 + [4] * 7
    blocks = [[run.scenario for run in runs[start : start + 7]] for start in (0, 7, 14, 21)]
    assert all(sorted(block) == sorted(blocks[0]) for block in blocks)
    assert len({tuple(block) for block in blocks}) > 1


def draws(plan: Plan) -> dict[tuple[str, int], set[tuple[int, tuple[int, ...]]]]:
    """Seed and starts of all scenarios, by experiment and repetition."""
    found: dict[tuple[str, int], set[tuple[int, tuple[int, ...]]]] = {}
    for run in plan.runs:
        drawn = (run.spec.seed, tuple(flow.start_us for flow in run.spec.flows))
        found.setdefault((run.experiment, run.repetition), set()).add(drawn)
    return found


def test_all_scenarios_of_a_repetition_have_equal_draws_and_each_repetition_has_its_own(study: Study) -> None:
    found = draws(paper(study))
    assert [len(alike) for alike in found.values()] == [1] * 8
    assert len(set.union(*found.values())) == 8


@pytest.mark.parametrize(
    "changed",
    [
        STUDY.replace("{algorithm: [standard, scalable], window:", "{window: [1 MiB, 2 MiB], algorithm:").replace(
            "algorithm: [512 KiB, 1 MiB, 2 MiB]", "algorithm: [scalable, standard]"
        ),
        STUDY.replace("stack: linux-2.4", "stack: modern").replace("{cca: reno}", "{cca: cubic}"),
        STUDY.replace("repetitions: 4", "repetitions: 6"),
    ],
)
def test_a_repetition_draws_the_same_whatever_else_of_the_study_changes(
    tmp_path: Path, study: Study, changed: str
) -> None:
    assert changed != STUDY
    assert draws(paper(study)).items() <= draws(paper(study_of(tmp_path, changed))).items()


def test_a_repetition_is_the_same_run_under_every_profile_that_has_it(study: Study) -> None:
    whole = {(run.scenario, run.repetition): run.run_id for run in paper(study).runs}
    thinned = [
        run for run in build_plan(study, profile="quick", pins={"kernel": "k1"}).runs if run.experiment == "first"
    ]
    assert len(thinned) == 4 * 3
    assert all(whole[run.scenario, run.repetition] == run.run_id for run in thinned)


def test_a_profile_thins_windows_repetitions_and_time(study: Study) -> None:
    runs = build_plan(study, profile="quick", pins={}).runs
    first = [run for run in runs if run.experiment == "first"]
    second = [run for run in runs if run.experiment == "second"]
    assert {run.factors["window"] for run in first} == {1 << 20, 2 << 20}
    assert max(run.repetition for run in first) == 3
    assert [run.spec.flows[0].duration_us for run in second] == [2_000_000]
    unchanged = build_plan(study, profile="smoke", pins={}).runs
    assert {(run.spec.flows[0].duration_us) for run in unchanged} == {10_000_000}, "a profile never adds time"
    assert max(run.repetition for run in unchanged) == 4, "or repetitions"


OWN = "{second: {repetitions: 1, duration: 2 s}}"
PAIRS = ["experiments[0].pairs_with", "experiments[1].pairs_with"]
LEFT_OUT = ["profiles.quick.leave_out[1]", "profiles.quick.experiments.second"]


@pytest.mark.parametrize(
    ("old", "new", "keys"),
    [
        ("quick:\n", "quick:\n    leave_out: [second, third]\n", LEFT_OUT),
        (OWN, "{third-*: {repetitions: 1}}", ["profiles.quick.experiments.third-*"]),
        ("- id: first", "- id: first\n    pairs_with: frist", PAIRS),
        ("- id: first", "- id: first\n    pairs_with: second", PAIRS),
    ],
)
def test_a_profile_or_a_pair_of_what_is_not_there_is_refused(
    tmp_path: Path, old: str, new: str, keys: list[str]
) -> None:
    text = STUDY.replace("- id: second", "- id: second\n    pairs_with: first")
    assert keys_of(tmp_path, text, (old, new)) == keys


def test_all_unknown_names_of_the_command_line_are_reported(study: Study) -> None:
    found = refused(lambda: build_plan(study, profile="quik", stack="linux-2", only=["secnd"], pins={}))
    assert [str(problem).partition(":")[0] for problem in found] == ["--profile", "--stack", "--only"]


def test_a_profile_sets_several_experiments_at_once_and_one_may_override_it(tmp_path: Path) -> None:
    def repetitions(entries: str) -> dict[str, int]:
        text = STUDY.replace("{second: {repetitions: 1, duration: 2 s}}", entries)
        runs = build_plan(study_of(tmp_path, text), profile="quick", pins={}).runs
        return {run.experiment: run.repetition for run in runs}

    assert repetitions('{"*": {repetitions: 2}}') == {"first": 2, "second": 2}
    assert repetitions('{second: {repetitions: 1}, "*": {repetitions: 2}}') == {"first": 2, "second": 1}
    assert repetitions('{"*": {repetitions: 2}, "*st": {repetitions: 1}}') == {"first": 1, "second": 2}
    assert repetitions("{sec*: {duration: 2 s}}") == {"first": 3, "second": 3}


def test_another_stack_replaces_the_studys_own(study: Study) -> None:
    plan = build_plan(study, stack="modern", pins={})
    sender = plan.runs[0].spec.nodes[0]
    assert plan.stack == "modern"
    assert sender.initial_cwnd_segments is None
    assert "net.ipv4.tcp_small_queues" not in sender.sysctls
    assert sender.sysctls["net.ipv4.tcp_sack"] == "0"


@pytest.mark.parametrize(
    ("labels", "slug"),
    [
        ({}, "e"),
        ({"window": "512 KiB"}, "e.window-512kib"),
        ({"rate": "2.4 Gbit/s", "loss": "1 %"}, "e.rate-2.4gbit.loss-1pct"),
        ({"path": "../a b"}, "e.path-..-ab"),
    ],
)
def test_a_slug_is_readable_and_safe_in_a_file_name(labels: dict[str, str], slug: str) -> None:
    assert scenario_slug("e", labels) == slug
    one, other = (scenario_slug("e", {"x": "y" * 300 + end}) for end in "ab")
    assert one != other and len(one) < 200


def test_scenarios_that_would_share_a_name_are_refused(tmp_path: Path) -> None:
    study = study_of(
        tmp_path,
        STUDY[: STUDY.index("profiles:")],
        ("net.ipv4.tcp_sack: 0}", "net.ipv4.tcp_mem: '${window}'}"),
        ('window: "${window}"', "window: 1 MiB"),
        ("[512 KiB, 1 MiB, 2 MiB]", "[1 1, '11', 2 MiB]"),
    )
    with pytest.raises(StudyError, match="share a name") as caught:
        build_plan(study, profile="paper", pins={})
    named = "window=1 1 and algorithm=standard, window=11 are both called 'first.algorithm-standard.window-11'"
    assert named in str(caught.value.problems[0])
    assert "share a name" in call("check", study.file).output


def test_a_setting_is_marked_as_stated_or_as_a_default(tmp_path: Path) -> None:
    study = load_study(write_study(tmp_path) / "study.yaml")
    found = settings(study.experiments[1].points[0].experiment, study)
    assert found["hosts.txqueuelen"] == Setting("100", default=False)
    assert found["topology.rtt"] == Setting("30 ms", default=False)
    assert found["topology.delay_placement"] == Setting("split", default=True)
    assert found["memory"] == Setting("1 GiB", default=True)


def test_the_expanded_plan_is_yaml_of_every_point_with_nothing_left_out(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    result = call("plan", study, "--profile", "paper", "--expanded")
    assert result.exit_code == 0, result.output
    assert "${" not in result.output
    documents = list(yaml.safe_load_all(result.output))
    assert [document["id"] for document in documents] == ["delay"] * 4 + ["one-drop"]
    assert [document["flows"][0]["algorithm"] for document in documents[1:3]] == [{"cca": "reno"}, {"cca": "highspeed"}]
    assert {document["memory"] for document in documents} == {"1 GiB"}


def test_the_expanded_form_names_the_files_of_a_study() -> None:
    study = load_study(Path(__file__).parents[2] / "experiments/gallery/program/study.yaml")
    data = expanded(study.experiments[0].points[0].experiment, study)
    assert yaml.safe_load(yaml.safe_dump(data))["programs"][0]["files"] == ["send.py", "receive.py"]
