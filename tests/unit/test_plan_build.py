# SPDX-License-Identifier: Apache-2.0
"""Planning: order, seeds, profiles, choice, and the resolution of every setting into a RunSpec."""

from dataclasses import replace
from pathlib import Path

import pytest

from longfat.errors import StudyError
from longfat.manifest.load import load_study
from longfat.manifest.reference import PAGE
from longfat.manifest.study import Study
from longfat.network import lay_out, route
from longfat.plan import Plan, build_plan
from longfat.plan.build import scenario_slug
from longfat.runspec import Change

STUDY = """\
format: 2
study: example
title: An example
stack: linux-2.4
seed: 7
algorithms:
  standard: {cca: reno}
  scalable: {cca: scalable, a: 0.02}
hosts: {mtu: 9000 B, txqueuelen: 100, sysctls: {net.ipv4.tcp_sack: 1, net.ipv4.tcp_frto: 2}}
experiments:
  - id: first
    topology: {kind: delay, rate: 1 Gbit/s, rtt: 30 ms}
    hosts: {mtu: 1500 B, sysctls: {net.ipv4.tcp_sack: 0}}
    flows:
      - name: f1
        from: client1
        to: server
        algorithm: "${algorithm}"
        window: "${window}"
        duration: 10 s
        start: 1 s
        start_jitter: 1 ms
    sweep:
      product: {algorithm: [standard, scalable], window: [512 KiB, 1 MiB, 2 MiB]}
      exclude: [{when: {algorithm: scalable, window: 2 MiB}, reason: too large}]
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


def load(folder: Path, text: str) -> Study:
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return load_study(path)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return load(tmp_path, STUDY)


def paper(study: Study, seed: int | None = None, **pins: str) -> Plan:
    return build_plan(study, profile="paper", seed=seed, pins={"kernel": "k1", **pins})


def test_the_same_study_gives_the_same_bytes(study: Study) -> None:
    assert paper(study).to_json() == paper(study).to_json()


def test_another_seed_gives_another_order_and_other_starts(study: Study) -> None:
    one, other = paper(study), paper(study, seed=8)
    assert [run.scenario for run in one.runs] != [run.scenario for run in other.runs]
    assert {run.run_id for run in one.runs}.isdisjoint(run.run_id for run in other.runs)
    assert other.seed == 8


def test_runs_stand_in_complete_blocks_of_repetitions(study: Study) -> None:
    runs = paper(study).runs
    assert [run.repetition for run in runs] == [1] * 6 + [2] * 6 + [3] * 6 + [4] * 6
    blocks = [[run.scenario for run in runs[start : start + 6]] for start in (0, 6, 12, 18)]
    assert all(sorted(block) == sorted(blocks[0]) for block in blocks)
    assert len({tuple(block) for block in blocks}) > 1


def test_the_start_moves_within_the_jitter_and_differs_between_repetitions(study: Study) -> None:
    starts = [run.spec.flows[0].start_us for run in paper(study).runs if run.experiment == "second"]
    assert all(1_000_000 <= start <= 1_001_000 for start in starts)
    assert len(set(starts)) == 4


def draws(plan: Plan) -> dict[tuple[str, int], set[tuple[int, tuple[int, ...]]]]:
    """Seed and starts of all scenarios, by experiment and repetition."""
    found: dict[tuple[str, int], set[tuple[int, tuple[int, ...]]]] = {}
    for run in plan.runs:
        drawn = (run.spec.seed, tuple(flow.start_us for flow in run.spec.flows))
        found.setdefault((run.experiment, run.repetition), set()).add(drawn)
    return found


def test_all_scenarios_of_a_repetition_draw_alike_and_every_repetition_anew(study: Study) -> None:
    found = draws(paper(study))
    assert [len(alike) for alike in found.values()] == [1] * 8
    assert len(set.union(*found.values())) == 8


@pytest.mark.parametrize(
    "changed",
    [
        STUDY.replace("[512 KiB, 1 MiB, 2 MiB]", "[2 MiB, 64 KiB, 1 MiB]"),
        STUDY.replace("{algorithm: [standard, scalable], window:", "{window: [1 MiB, 2 MiB], algorithm:").replace(
            "algorithm: [512 KiB, 1 MiB, 2 MiB]", "algorithm: [scalable, standard]"
        ),
        STUDY.replace("rate: 1 Gbit/s, rtt: 30 ms", "rate: 2 Gbit/s, rtt: 10 ms"),
        STUDY.replace("stack: linux-2.4", "stack: modern").replace("{cca: reno}", "{cca: cubic}"),
        STUDY.replace("duration: 10 s", "duration: 3 s").replace("mtu: 1500 B", "mtu: 9000 B"),
        STUDY.replace("repetitions: 4", "repetitions: 6"),
    ],
    ids=["window", "order-of-factors", "path", "algorithm", "duration", "repetitions"],
)
def test_a_repetition_draws_the_same_whatever_else_of_the_study_changes(
    tmp_path: Path, study: Study, changed: str
) -> None:
    assert changed != STUDY
    assert draws(paper(study)).items() <= draws(paper(load(tmp_path, changed))).items()


def test_a_repetition_is_the_same_run_under_every_profile_that_has_it(study: Study) -> None:
    whole = {(run.scenario, run.repetition): run.run_id for run in paper(study).runs}
    thinned = [
        run for run in build_plan(study, profile="quick", pins={"kernel": "k1"}).runs if run.experiment == "first"
    ]
    assert len(thinned) == 3 * 3
    assert all(whole[run.scenario, run.repetition] == run.run_id for run in thinned)


def test_experiments_draw_for_themselves_unless_one_pairs_with_the_other(tmp_path: Path, study: Study) -> None:
    def shared(plan: Plan) -> set[str]:
        first = {run.run_id for run in plan.runs if run.scenario == "first.algorithm-standard.window-1mib"}
        return first & {run.run_id for run in plan.runs if run.experiment == "second"}

    assert shared(paper(study)) == set()
    paired = load(tmp_path, STUDY.replace("- id: second", "- id: second\n    pairs_with: first"))
    assert len(shared(paper(paired))) == 4


def test_an_experiment_pairs_with_one_that_is_there_and_draws_for_itself(tmp_path: Path) -> None:
    text = STUDY.replace("- id: second", "- id: second\n    pairs_with: first")
    with pytest.raises(StudyError) as caught:
        load(tmp_path, text.replace("- id: first", "- id: first\n    pairs_with: frist"))
    assert [(problem.line, problem.message, problem.hint) for problem in caught.value.problems] == [
        (12, "unknown experiment 'frist'; allowed: first, second", "did you mean 'first'?"),
        (
            29,
            "'first' takes its draws from 'frist'",
            "let both pair with the same experiment",
        ),
    ]


def test_pins_change_the_run_but_not_its_seed(study: Study) -> None:
    one = paper(study).runs[0]
    other = build_plan(study, profile="paper", pins={"kernel": "k2"}).runs[0]
    assert one.run_id != other.run_id
    assert one.spec == replace(other.spec, pins={"kernel": "k1"})


def test_a_lock_entry_carries_base_units_and_the_digest_of_its_spec(study: Study) -> None:
    run = next(run for run in paper(study).runs if run.experiment == "first")
    assert run.run_id == run.spec.run_id
    assert isinstance(run.factors["window"], int)
    assert run.spec.pins == {"kernel": "k1"}


def test_a_profile_thins_windows_repetitions_and_time(study: Study) -> None:
    runs = build_plan(study, profile="quick", pins={}).runs
    first = [run for run in runs if run.experiment == "first"]
    second = [run for run in runs if run.experiment == "second"]
    assert {run.factors["window"] for run in first} == {1 << 20, 2 << 20}
    assert max(run.repetition for run in first) == 3
    assert [run.spec.flows[0].duration_us for run in second] == [2_000_000]


def test_a_profile_may_bring_starts_nearer_together(tmp_path: Path) -> None:
    text = STUDY.replace("quick:\n    repetitions: 3", "quick:\n    repetitions: 3\n    starts: 10 %")
    text = text.replace("repetitions: 1, duration: 2 s}", "repetitions: 1, starts: 50 %}")
    runs = build_plan(load(tmp_path, text.replace("start_jitter: 1 ms", "start_jitter: 0 ms")), pins={}).runs
    starts = {(run.experiment, run.spec.flows[0].start_us, run.spec.flows[0].duration_us) for run in runs}
    assert starts == {("first", 100_000, 10_000_000), ("second", 500_000, 10_000_000)}


def test_a_profile_may_leave_out_an_experiment_as_a_whole(tmp_path: Path) -> None:
    without = load(tmp_path, STUDY.replace("60 s}", "60 s, leave_out: [second]}"))
    assert {run.experiment for run in build_plan(without, profile="smoke", pins={}).runs} == {"first"}
    assert {run.experiment for run in build_plan(without, profile="paper", pins={}).runs} == {"first", "second"}
    with pytest.raises(StudyError) as caught:
        load(tmp_path, STUDY.replace("quick:\n", "quick:\n    leave_out: [second, third]\n"))
    assert sorted(problem.message for problem in caught.value.problems) == [
        "experiment 'second' is left out, so it cannot be thinned",
        "unknown experiment 'third'; allowed: first, second",
    ]


def kept(study: Study, experiment: str = "first") -> set[tuple[object, ...]]:
    runs = build_plan(study, profile="quick", only=[experiment], pins={}).runs
    return {tuple(run.factors.values()) for run in runs}


def test_a_profile_may_keep_the_first_value_of_every_factor_that_it_does_not_name(tmp_path: Path) -> None:
    first = STUDY.replace("keep: {window: [1 MiB, 2 MiB]}", "rest: first")
    assert kept(load(tmp_path, first)) == {("standard", 512 << 10)}
    assert kept(load(tmp_path, first), "second") == {()}
    windows = STUDY.replace("keep: {window: [1 MiB, 2 MiB]}", "keep: {window: [1 MiB, 2 MiB]}\n    rest: first")
    assert kept(load(tmp_path, windows)) == {("standard", 1 << 20), ("standard", 2 << 20)}
    own = first.replace("{second: {", "{first: {keep: {algorithm: [scalable]}}, second: {")
    assert kept(load(tmp_path, own)) == {("scalable", 512 << 10)}


def test_what_a_study_excludes_is_not_the_first_of_the_rest(tmp_path: Path) -> None:
    text = STUDY.replace("keep: {window: [1 MiB, 2 MiB]}", "keep: {window: [1 MiB, 2 MiB]}\n    rest: first")
    without = text.replace("algorithm: scalable, window: 2 MiB", "algorithm: standard, window: 2 MiB")
    assert kept(load(tmp_path, without)) == {("standard", 1 << 20), ("scalable", 2 << 20)}


def test_a_profile_says_of_several_experiments_at_once_what_one_of_them_may_say_otherwise(tmp_path: Path) -> None:
    def repetitions(entries: str) -> dict[str, int]:
        text = STUDY.replace("{second: {repetitions: 1, duration: 2 s}}", entries)
        runs = build_plan(load(tmp_path, text), profile="quick", pins={}).runs
        return {run.experiment: run.repetition for run in runs}

    assert repetitions('{"*": {repetitions: 2}}') == {"first": 2, "second": 2}
    assert repetitions('{second: {repetitions: 1}, "*": {repetitions: 2}}') == {"first": 2, "second": 1}
    assert repetitions('{"*": {repetitions: 2}, "*st": {repetitions: 1}}') == {"first": 1, "second": 2}
    assert repetitions("{sec*: {duration: 2 s}}") == {"first": 3, "second": 3}


def test_what_names_no_experiment_or_no_factor_of_one_is_refused(tmp_path: Path) -> None:
    entries = "{third-*: {repetitions: 1}, sec*: {keep: {window: [1 MiB]}}}"
    with pytest.raises(StudyError) as caught:
        load(tmp_path, STUDY.replace("{second: {repetitions: 1, duration: 2 s}}", entries))
    assert [problem.message for problem in caught.value.problems] == [
        "unknown experiment 'third-*'; allowed: first, second",
        "unknown factor 'window'; allowed: none",
    ]


def test_a_profile_never_adds_repetitions_or_time(study: Study) -> None:
    runs = build_plan(study, profile="smoke", pins={}).runs
    assert max(run.repetition for run in runs) == 4
    assert {run.spec.flows[0].duration_us for run in runs} == {10_000_000}


def test_unknown_names_are_reported_together_with_the_nearest(study: Study) -> None:
    with pytest.raises(StudyError) as caught:
        build_plan(study, profile="quik", stack="linux-2", only=["secnd"], pins={})
    assert [str(problem) for problem in caught.value.problems] == [
        "--profile: unknown profile 'quik'; allowed: smoke, quick, steady, paper (did you mean 'quick'?)",
        "--stack: unknown stack 'linux-2'; allowed: modern, linux-2.4 (did you mean 'linux-2.4'?)",
        "--only: unknown experiment 'secnd'; allowed: first, second (did you mean 'second'?)",
    ]


def test_settings_weigh_more_the_nearer_they_stand_to_the_flow(study: Study) -> None:
    run = next(run for run in paper(study).runs if run.factors.get("algorithm") == "scalable")
    sender, receiver = run.spec.nodes
    assert sender.sysctls["net.ipv4.tcp_small_queues"] == "0"
    assert sender.sysctls["net.ipv4.tcp_frto"] == "2"
    assert sender.sysctls["net.ipv4.tcp_sack"] == "0"
    assert sender.sysctls["net.ipv4.tcp_scalable.a_ppm"] == "20000"
    assert sender.sysctls["net.ipv4.tcp_cc_info"] == "1"
    assert sender.initial_cwnd_segments == 2
    assert "net.ipv4.tcp_recv_fill" not in sender.sysctls
    assert receiver.sysctls["net.ipv4.tcp_recv_fill"] == "1"
    assert "net.ipv4.tcp_scalable.a_ppm" not in receiver.sysctls
    assert "net.ipv4.tcp_cc_info" not in receiver.sysctls


def test_a_router_forwards_and_has_nothing_of_the_stack(study: Study) -> None:
    run = next(run for run in paper(study, backend="mininet").runs if run.factors.get("algorithm") == "scalable")
    (router,) = (node for node in run.spec.nodes if node.role == "router")
    assert router.sysctls == {"net.ipv4.ip_forward": "1"}


def documented(tmp_path: Path, having: str) -> Study:
    """The example of docs/manifest.md that has this text, with the head that every study has."""
    page = (Path(__file__).parents[2] / PAGE).read_text(encoding="utf-8")
    parts = (part.split("```")[0] for part in page.split("```yaml\n")[1:])
    (example,) = (part for part in parts if having in part)
    path = tmp_path / "study.yaml"
    path.write_text(f"format: 2\nstudy: example\ntitle: An example\n{example}", encoding="utf-8")
    return load_study(path)


def test_the_documented_example_of_names_is_planned_as_it_says(tmp_path: Path) -> None:
    runs = build_plan(documented(tmp_path, "paths:"), profile="paper", pins={}).runs
    assert len(runs) == 2 * 4 * 3
    queues = {(run.experiment, run.factors["path"], run.spec.links[1].a.egress.queue.limit_packets) for run in runs}
    assert {limit for experiment, path, limit in queues if path == "long"} == {354}
    assert {flow.streams for run in runs for flow in run.spec.flows if run.factors["stack"] == "p-tcp"} == {16}


def test_the_documented_example_of_queues_is_planned_as_it_says(tmp_path: Path) -> None:
    runs = build_plan(documented(tmp_path, 'kind: "${queue}"'), profile="paper", pins={}).runs
    ports = [port for run in runs for port in lay_out(run.spec).all_ports()]
    assert {port.egress.queue.kind for port in ports} == {"pfifo", "bfifo", "codel", "fq_codel", "pie", "cake"}
    assert {run.factors["loss"] for run in runs if run.experiment == "radio"} == {0, 1_000, 10_000}
    impairments = {port.egress.impairment for port in ports} - {None}
    assert {one.loss_ppm for one in impairments if one and not one.bursts} == {0, 1_000, 10_000}
    assert {one.bursts.enter_ppm for one in impairments if one and one.bursts} == {1_000}


def test_the_documented_example_of_changing_paths_and_networks_is_planned_as_it_says(tmp_path: Path) -> None:
    runs = {run.experiment: run.spec for run in build_plan(documented(tmp_path, "      changes:"), pins={}).runs}
    (port,) = (port for port in lay_out(runs["handover"]).ports["switch"] if port.egress.rate_bps)
    assert port.egress.changes == (
        Change(20_000_000, held=True),
        Change(20_300_000, 5_000_000, 40_000, held=False),
    )
    assert len([port for port in lay_out(runs["lot"]).all_ports() if port.egress.rate_bps]) == 3
    ends = [(flow.sender, flow.receiver) for flow in runs["two-ways"].flows]
    ways = [(*route(runs["two-ways"], *pair), *route(runs["two-ways"], *pair[::-1])) for pair in ends]
    assert [sum(port.egress.delay_us for port in way) for way in ways] == [40_000, 238_000]


def test_hosts_of_one_run_may_differ_in_the_parameters_of_one_algorithm(tmp_path: Path) -> None:
    (run,) = build_plan(documented(tmp_path, "gentle:"), pins={}).runs
    assert [(flow.sender, flow.cca) for flow in run.spec.flows] == [("client1", "scalable"), ("client2", "scalable")]
    shares = {node.name: node.sysctls.get("net.ipv4.tcp_scalable.a_ppm") for node in run.spec.nodes}
    assert shares == {"client1": "10000", "client2": "50000", "switch": None, "server": None}
    assert [run.spec.cca_parameters(flow)["a_ppm"] for flow in run.spec.flows] == ["10000", "50000"]


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


def test_a_long_slug_is_cut_and_stays_unique() -> None:
    one, other = (scenario_slug("e", {"x": "y" * 300 + end}) for end in "ab")
    assert one != other
    assert len(one) < 200


def test_scenarios_that_would_share_a_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    text = STUDY.replace("net.ipv4.tcp_sack: 0}", "net.ipv4.tcp_mem: '${window}'}", 1)
    text = text.replace('window: "${window}"', "window: 1 MiB")
    text = text[: text.index("profiles:")]
    path.write_text(text.replace("[512 KiB, 1 MiB, 2 MiB]", "[1 1, '11', 2 MiB]", 1), encoding="utf-8")
    study = load_study(path)
    with pytest.raises(StudyError, match="two scenarios are both called") as caught:
        build_plan(study, profile="paper", pins={})
    assert "'first.algorithm-standard.window-11'" in caught.value.message


def test_the_loss_of_a_capture_may_be_a_factor(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    text = STUDY.replace("2 MiB]}\n      exclude:", "2 MiB], capture_loss: [0, 20]}\n      exclude:")
    lossy = '    probes: {capture: [f1], capture_loss: "${capture_loss}"}\n  - id: second'
    path.write_text(text.replace("  - id: second", lossy), encoding="utf-8")
    plan = paper(load_study(path))
    found = {(run.factors.get("capture_loss"), run.spec.probes.capture_loss_percent) for run in plan.runs}
    assert found == {(0, 0.0), (20, 20.0), (None, 0.0)}
    assert len({run.run_id for run in plan.runs if run.experiment == "first"}) == 5 * 2 * 4
