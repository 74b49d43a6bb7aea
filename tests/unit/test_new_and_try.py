# SPDX-License-Identifier: Apache-2.0
"""The commands that make a study: ``new`` writes a sound skeleton, ``try`` a sound study from its options."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from manifests import refused
from tables_in_memory import flow_row, run, tables
from typer.testing import CliRunner

from longfat.cli import app
from longfat.cli.study import Choices, require_effects, resolve
from longfat.cli.trial import QUEUES, read_trial
from longfat.cli.try_ import rate_together
from longfat.data.study_folder import StudyFolder
from longfat.metrics.quantities import Selection, metric_of_run
from longfat.study.load import load_study
from longfat.study.traffic.own import PROGRAM

RATES = st.sampled_from(["7mbit", "3,30,300Mbit/s", "1gbps", "0.5, 2 gbit", "990gbit"])
BUFFERS = st.sampled_from(["", "0.5bdp", "20,200", "64kB", "3ms, 9ms", "20kB,1MB"])
ALGORITHMS = st.lists(st.sampled_from(["reno", "cubic", "bbr", "PROGRAM", "tcp_own.c"]), min_size=1, unique=True)
QUEUE = st.lists(st.sampled_from(QUEUES), min_size=1, max_size=2, unique=True).map(",".join)
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A program and a C file of the user."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "steady").mkdir()
    for name in PROGRAM:
        (folder / "steady" / name).write_text("#!/bin/sh\n", encoding="utf-8")
    text = (DOCS / "own-algorithm.md").read_text(encoding="utf-8")
    source = re.search(r"(?s)```c\n(.*?)```", text)
    assert source is not None
    (folder / "tcp_sqrt.c").write_text(source[1], encoding="utf-8")
    return {"PROGRAM": str(folder / "steady"), "tcp_own.c": str(folder / "tcp_sqrt.c")}


@settings(max_examples=12)
@given(ALGORITHMS, RATES, BUFFERS, QUEUE, st.booleans(), st.integers(1, 3))
def test_options_make_a_sound_study_with_a_run_for_each_point(
    tmp_path_factory: pytest.TempPathFactory,
    own: dict[str, str],
    algorithms: list[str],
    rate: str,
    buffer: str,
    queue: str,
    together: bool,
    flows: int,
) -> None:
    given = {"rate": rate, "rtt": "20,40ms", "buffer": buffer, "queue": queue, "loss": "0.2%", "duration": "3s"}
    place = tmp_path_factory.mktemp("trial")
    read_trial([own.get(one, one) for one in algorithms], given, flows, together, 2, place)
    study = StudyFolder(place)
    study.check()
    require_effects(study)
    assert study.warnings == ()
    runs = resolve(study, Choices("paper"), {"backend": "virtual"}).runs
    points = 2 * (rate.count(",") + 1) * (buffer.count(",") + 1) * (queue.count(",") + 1)
    assert len(runs) == 2 * points * (1 if together else len(algorithms))
    assert {len(run.spec.sent) for run in runs} == {flows * (len(algorithms) if together else 1)}


def test_a_number_has_the_unit_of_the_next_value_that_has_one(tmp_path: Path) -> None:
    given = {"rate": "3,30mbit,0.1gbit", "rtt": "9ms", "buffer": "", "queue": "fq", "loss": "", "duration": "3s"}
    trial = read_trial(["reno"], given, 1, False, 1, tmp_path)
    assert trial.path["rate"] == ("3 Mbit/s", "30 Mbit/s", "0.1 Gbit/s")


def test_every_faulty_option_is_named_at_once(root: Path) -> None:
    (root / "trial").mkdir()
    given = {"rate": "30", "rtt": "4 mbit", "buffer": "much", "queue": "pfifo,cdl", "loss": "some", "duration": "3"}
    (root / "tcp_rate.c").write_text("int nothing;\n", encoding="utf-8")
    algorithms = ["cubc", "absent.c", "cubic", "cubic", str(root / "tcp_rate.c")]
    found = refused(lambda: read_trial(algorithms, given, 17, False, 0, root / "trial"))
    places = ["--rate", "--rtt", "--loss", "--buffer", "--duration", "--queue", "--flows", "--repetitions"]
    places += ["ALGORITHM", "absent.c", "ALGORITHM", algorithms[-1]]
    assert [problem.file for problem in found] == places


@pytest.mark.parametrize(
    ("rate", "loss", "buffer", "duration"),
    [
        ("0bit", "101%", "0", "0s"),
        ("20mbit,0mbit", "1%,300%", "0ms,7ms", "200min"),
        ("2Tbit/s", "101%", "3000000", "0s"),
        ("10gbit,0.995Tbit/s", "101%", "20,1bdp", "0s"),
        ("100MBps", "101%", "30ms,100kB", "0s"),
    ],
)
def test_values_that_no_study_allows_are_named_by_their_options(
    root: Path, rate: str, loss: str, buffer: str, duration: str
) -> None:
    given = {"rate": rate, "rtt": "9ms,0ms", "loss": loss, "buffer": buffer, "duration": duration}
    found = refused(lambda: read_trial(["cubic"], {"queue": "pfifo", **given}, 1, False, 1, root))
    assert {problem.file for problem in found} == {f"--{name}" for name in given}


def test_a_faulty_trial_leaves_no_study(root: Path) -> None:
    assert call("try", "bic", "--buffer", "0bdp", "--as-study", "kept")[0] == 2
    assert not (root / "experiments").exists()


def test_a_trial_prints_curves_and_a_table_and_can_be_kept_as_a_study(root: Path) -> None:
    status, printed = call("try", "reno", "cubic", "--rate", "20mbit", "--flows", "2", "--backend", "fake")
    assert status == 0, printed
    names = ("congestion window", "acknowledged rate", "queueing delay", "reno flow1", "cubic flow2")
    assert [name for name in names if name not in printed] == []
    assert (root / "results/try/report.html").is_file()
    assert list((root / "experiments").glob("*")) == []
    status, printed = call("try", "reno", "--buffer", "30ms,60ms", "--as-study", "kept", "--backend", "fake")
    assert (status, "reno 60 ms" in printed) == (0, True), printed
    result = CliRunner().invoke(app, ["try", "bbr", "--flows", "7", "--rate", "9mbit", "--backend", "fake", "--json"])
    whole, *parts = json.loads(result.stdout)["means"]
    assert len(parts) == 7 and whole["goodput_mbps"] == pytest.approx(sum(part["goodput_mbps"] for part in parts))
    assert "0 runs executed, 2 kept" in call("reproduce", "kept", "--backend", "fake", "--profile", "paper")[1]
    assert "does not compare backends" in call("reproduce", "kept", "--backend", "fake,virtual")[1]
    assert call("try", "reno", "--as-study", "kept")[0] == 2, "a study that is there is not written over"
    assert call("try", "reno", "--as-study", "try")[0] == call("new", "fill")[0] == 2, "their results are others'"
    assert [folder.name for folder in (root / "experiments").iterdir()] == ["kept"]


def test_the_rates_of_flows_add_up_to_their_rate_together() -> None:
    ends, one = {"long": 9, "short": 4}, run("a")
    samples = [(1e6 * t, flow, 0, 0, 1, 1, 1e6 * t**2) for flow, end in ends.items() for t in range(1, end)]
    dataset = tables([one], samples={"a": samples})
    vars(dataset)["flows"] = {"a": tuple(flow_row(flow, 1.0, until_s=end) for flow, end in ends.items())}
    whole = metric_of_run(dataset, one, Selection("together", "two"))
    assert sum(rate_together(dataset, flow, one) for flow in ends) == pytest.approx(whole)


def test_a_new_study_is_sound_without_a_warning(root: Path) -> None:
    assert call("new", "mine")[0] == 0
    for file in ("study", "claims", "figures"):  # an editor finds the schema without a network, and accepts the file
        path = root / f"experiments/mine/{file}.yaml"
        named = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# yaml-language-server: $schema=")
        schema = json.loads((path.parent / named).read_text(encoding="utf-8"))
        Draft202012Validator(schema).validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    path = root / "experiments" / "mine" / "study.yaml"
    study = load_study(path)
    assert (study.name, [swept.id for swept in study.experiments]) == ("mine", ["alone"])
    assert StudyFolder(path.parent).warnings == ()
    assert call("check", "mine")[0] == 0
    before = path.read_bytes()
    assert call("new", "mine")[0] == 2
    assert path.read_bytes() == before, "a study that is there is not written over"
    assert (call("new", "123")[0], call("check", "123")[0]) == (0, 0), "a name may be digits"


@pytest.mark.parametrize("name", ["Mine", "../mine", "", "a b"])
def test_an_invalid_name_makes_no_folder(root: Path, name: str) -> None:
    assert call("new", name)[0] == 2
    assert list(root.iterdir()) == []


def test_the_tutorial_shows_the_skeleton_and_adds_to_its_three_files(root: Path) -> None:
    call("new", "buffers")
    skeleton = (root / "experiments/buffers/study.yaml").read_text(encoding="utf-8")
    blocks = re.findall(r"(?s)```yaml\n(.*?)```", (DOCS / "own-study.md").read_text(encoding="utf-8"))
    added = [place[1] for block in blocks if (place := re.match(r"# (\S+), at the end\n", block))]
    assert added == ["study.yaml", "claims.yaml", "figures.yaml"]
    assert sum(block in skeleton for block in blocks) == len(blocks) - len(added) > 0
