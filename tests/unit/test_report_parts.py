# SPDX-License-Identifier: Apache-2.0
"""The parts of a report: quotations of a README, the forest plot, the samples of the explorer."""

from __future__ import annotations

import base64
import io
import json
import zlib
from itertools import accumulate
from pathlib import Path

import pytest
from fabricated_results import CLAIMS, judge_study, make_results, write_study
from rich.console import Console

from longfat.cli.report import print_verdicts
from longfat.data.study_folder import StudyFolder
from longfat.dataset.build import build_dataset
from longfat.dataset.load import load_dataset
from longfat.plan import PlannedRun, build_plan, write_lock
from longfat.plan.lockfile import read_lock
from longfat.relations.evaluate import Evidence
from longfat.relations.judge import Verdict
from longfat.report.explorer import explorer_data
from longfat.report.forest import WIDTH, by_section, forest
from longfat.report.readme import read_readme
from longfat.study.load import load_study

README = """\
# small

A. Author, *A study*, 2003.

The paper asks
a question.

| a | table |
|---|---|

Not the question.

## Answer
It depends.

## Results
**`fair-*`**: the queue, [see](../other.md). Also `far` <b>, and it has
969.

- Some other text about `far`.
"""


def verdict(claim: str, where: str = "Results", word: str = "reproduced", *evidence: Evidence) -> Verdict:
    return Verdict(claim, None, (), "A claim.", "1", where, word, None, evidence)  # type: ignore[arg-type]


def test_question_and_causes_are_taken_from_the_readme() -> None:
    readme = read_readme(README, ["fair-share", "far", "else"])
    assert readme.question == "<p>The paper asks a question.</p>"
    assert read_readme(README, [], cited=False).question.endswith(f"</p>\n{readme.question}")
    (fair,) = readme.of("fair-share")
    assert "the queue, see. Also" in fair.text and "&lt;b&gt;" in fair.text and "href" not in fair.text
    assert [cause.text[:20] for cause in readme.of("far")] == [fair.text[:20], "<p>Some other text a"]
    assert readme.of("else") == ()


def test_a_row_of_what_differs_is_a_cause_unless_it_is_open() -> None:
    rows = [
        "| group | claims not reproduced | cause | evidence | [state](claims.md#causes) |",
        "|---|---|---|---|---|",
        "| queue | `far`, `fair-*` | too *short* | sweep | guess |",
        "| rest | `else` | not sought | none | open |",
    ]
    table = "\n".join(rows)
    readme = read_readme(f"{README}\n## What differs\n{table}\n", ["fair-share", "far", "else"])
    assert [cause.text for cause in readme.of("far")] == [
        "<p><strong>queue (<code>far</code>, <code>fair-*</code>):</strong> too <em>short</em> (sweep; guess).</p>"
    ]
    assert len(readme.of("fair-share")) == 2
    assert readme.of("else") == ()
    other = table.replace("[state]", "[word]", 1)
    assert (
        read_readme(f"{README}\n## What differs\n{other}\n", ["far"]).of("far")[0].text.startswith("<p><strong><code>")
    )


def test_the_forest_draws_the_interval_to_the_scale_of_what_is_allowed() -> None:
    inside = Evidence(
        "x", "s", "90 to 110 s", "reproduced", 105.0, None, 3, 100.0, 110.0, limit_low=90.0, limit_high=110.0
    )
    far = Evidence("x", "s", "90 to 110 s", "not reproduced", 500.0, None, 1, limit_low=90.0, limit_high=110.0)
    above = Evidence("x", "s", "above 0 s", "reproduced", 8.0, None, 1, limit_low=0.0)
    none = Evidence("x", "s", "", "undecided", reason="run missing", why="runs missing")
    claims = [
        verdict("two", "Results", "not reproduced", inside, far),
        *(verdict(str(number), "Results", "reproduced", one) for number, one in enumerate((inside, above, none))),
    ]
    (part,) = forest(by_section(claims))
    two, first, second, third = part.rows
    assert (first.band, first.dot, first.whisker) == ((80.0, 160.0), 140.0, (120.0, 160.0))
    assert two.beyond == 1 and two.dot is not None and two.dot < WIDTH
    assert (second.band, second.dot) == ((80.0, 240.0), 160.0)
    assert third.dot is None and third.measured == "run missing"


def with_state(_run: PlannedRun, folder: Path) -> None:
    text = "t_us,flow,stream,name,value\n5000,stream1,0,alpha,0\n6000,stream1,0,alpha,0.25\n"
    (folder / "cca_state.csv").write_text(text, encoding="utf-8")


def test_the_explorer_has_every_sample_of_every_run(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    make_results(study, tmp_path, bend=with_state, judged=True)
    plan, dataset = read_lock(tmp_path / "lock.json"), load_dataset(tmp_path)
    labels = {"delay": {"loss": {10_000: "1 %", 7: "7"}}}
    packed = explorer_data(plan, dataset, {"fig-1": ("delay",)}, {}, {}, labels)
    data = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert data["labels"] == {"delay": [["loss", [[10_000, "1 %"]]]]}, "a label that differs from the number"
    assert {run["experiment"] for run in data["runs"]} == {"delay", "one-drop"}
    tables = {"sockets": 0, "queues": 0, "cca_state": 0}
    for series in data["series"]:
        tables[series["table"]] += 1
        times, values = list(accumulate(series["t"])), {k: list(accumulate(v)) for k, v in series["values"].items()}
        if series["table"] == "sockets":
            run_id = next(one.run_id for one in plan.runs if one.run_id.startswith(data["specs"][series["run"]]["id"]))
            table = dataset.sockets(run_id, series["flow"])
            own = table["stream"] == series["stream"]
            assert values["cwnd_segments"] == table["cwnd_segments"][own].tolist()
            assert times == pytest.approx(table["t_us"][own] / 1000, abs=0.5)
        if series["table"] == "cca_state":
            assert series["name"] == "alpha"
            assert [value * 10.0 ** series["power"] for value in values["value"]] == pytest.approx([0.0, 0.25])
    assert tables["sockets"] and tables["cca_state"]
    assert any("dropped: packet 100 after 1.5 s" in line for line in data["texts"])


def test_a_failed_part_stands_for_a_claim_before_an_undecided_one() -> None:
    told = [
        Evidence("far inside", "", "", "reproduced", mean=1.0, p_inside=0.001),
        Evidence("near its limit", "", "", "compatible", mean=1.0, p_inside=0.04),
        Evidence("", "", "", "undecided", mean=1.0, why="too few runs"),
        Evidence("", "", "", "undecided", reason="run missing", why="runs missing"),
        Evidence("hardly outside", "", "", "not reproduced", mean=1.0, p_against=0.04),
        Evidence("far outside", "", "", "not reproduced", mean=1.0, p_against=0.001),
    ]
    instead = Evidence("instead: of it", "", "", "not reproduced", mean=2.0)
    for kept in range(len(told), 0, -1):
        assert verdict("one", "Results", "not reproduced", instead, *told[:kept]).deciding is told[kept - 1]
    assert verdict("one", "Results", "not reproduced", instead).deciding is None


@pytest.mark.parametrize("width", [80, 200])
def test_the_closing_table_has_whole_ids_and_leaves_out_claims_whose_runs_were_not_planned(
    width: int, tmp_path: Path
) -> None:
    name = "a-drop-halves-the-congestion-window-of-the-only-flow"
    study, results = write_study(tmp_path, CLAIMS.replace("halves", name)), tmp_path / "results"
    (results / "raw").mkdir(parents=True)
    plan = build_plan(load_study(study / "study.yaml"), profile="paper", only=("one-drop",), pins={})
    write_lock(plan, results / "lock.json")
    build_dataset(results)
    printed = io.StringIO()
    console = Console(file=printed, width=width)
    print_verdicts(judge_study(results, study), StudyFolder(study).header, console, every=False)
    ids = [line.split("│")[1].strip() for line in printed.getvalue().splitlines() if line.startswith("│")]
    assert "".join(ids) == name
    assert {part[-1] for part in "".join(f"{one} " for one in ids).split()[:-1]} == {"-"}
