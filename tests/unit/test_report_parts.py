# SPDX-License-Identifier: Apache-2.0
"""The parts of a report: what it takes from a README, the forest plot, the samples in their few bytes."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

import numpy as np
import pytest
from fabricated_results import judge_study, write_results, write_study

from longfat.dataset.build import build_dataset
from longfat.dataset.load import load_dataset
from longfat.plan import PlannedRun
from longfat.plan.lockfile import read_lock
from longfat.relations.evaluate import Evidence
from longfat.relations.judge import Verdict
from longfat.relations.limits import Outcome
from longfat.report.explorer import explorer_data
from longfat.report.forest import WIDTH, by_section, forest
from longfat.report.inline import inlined
from longfat.report.readme import read_readme
from longfat.report.samples import COLUMNS, encoded

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
969. Then
83.3. With a queue it has 2 - or 3.

- Some other text about `far`.
- **`near`** is near.

## Results with today's stack
`near` is far.
"""


def verdict(claim: str, where: str = "Results", word: str = "reproduced", *evidence: Evidence) -> Verdict:
    return Verdict(claim, None, (), "A claim.", "1", where, word, None, evidence)  # type: ignore[arg-type]


def test_question_answer_and_causes_are_taken_from_the_readme(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(README, encoding="utf-8")
    readme = read_readme(tmp_path, ["fair-share", "far", "near", "else"])
    assert readme.question == "<p>The paper asks a question.</p>"
    assert readme.answer == "<p>It depends.</p>"
    (fair,) = readme.of("fair-share")
    assert "has 969. Then 83.3. With a queue it has 2 - or 3." in fair.text
    assert "the queue, see. Also" in fair.text and "&lt;b&gt;" in fair.text and "href" not in fair.text
    assert [cause.text[:20] for cause in readme.of("far")] == [fair.text[:20], "<p>Some other text a"]
    assert [cause.text for cause in readme.of("near")] == ["<p><strong><code>near</code></strong> is near.</p>"]
    assert readme.of("else") == ()
    assert read_readme(tmp_path / "nowhere", ["far"]).question == ""


def test_claims_stand_in_the_sections_of_the_paper() -> None:
    places = ("Slow Start, figure 1", "figure 2", "Back-to-Back", "end of Slow Start")
    claims = [verdict(str(number), place) for number, place in enumerate(places)]
    found = {section: [one.claim for one in own] for section, own in by_section(claims).items()}
    assert found == {"Slow Start": ["0", "1", "3"], "Back-to-Back": ["2"]}


def test_the_forest_draws_the_interval_to_the_scale_of_what_is_allowed() -> None:
    inside = Evidence("x", "s", "90 to 110 s", "holds", 105.0, None, 3, 100.0, 110.0, limit_low=90.0, limit_high=110.0)
    far = Evidence("x", "s", "90 to 110 s", "fails", 500.0, None, 1, limit_low=90.0, limit_high=110.0)
    above = Evidence("x", "s", "above 0 s", "holds", 8.0, None, 1, limit_low=0.0)
    none = Evidence("x", "s", "", "no_data", reason="run missing")
    claims = [
        verdict("two", "Results", "not_reproduced", inside, far),
        *(verdict(str(number), "Results", "reproduced", one) for number, one in enumerate((inside, above, none))),
    ]
    (part,) = forest(by_section(claims))
    two, first, second, third = part.rows
    assert (first.band, first.dot, first.whisker) == ((80.0, 160.0), 140.0, (120.0, 160.0))
    assert two.beyond == 1 and two.dot is not None and two.dot < WIDTH
    assert (second.band, second.dot) == ((80.0, 240.0), 160.0)
    assert third.dot is None and third.measured == "run missing"
    assert part.counts == {"not_reproduced": 1, "reproduced": 3}


def test_a_drawing_in_a_page_has_its_places_rounded_and_its_letters_as_they_are() -> None:
    shape, letters = '<path d="M 1.23456 2.0 L 3 4"/>', '<text x="1.23456">0.0035</text>'
    drawing = f'<?xml?><svg width="9" viewBox="0 0 90.126 50">{shape}{letters}</svg>'
    assert inlined(drawing, "fig-1", "a of 0.125") == (
        '<svg viewBox="0 0 90.13 50" role="img" aria-label="a of 0.125">'
        '<path d="M1.23 2L3 4"/><text x="1.23">0.0035</text></svg>'
    )


def decoded(stream: bytes, lengths: list[int]) -> list[list[int]]:
    """The series of a column, as docs/report.md states it."""
    at, found = 0, []
    for length in lengths:
        series: list[int] = []
        for _ in range(length):
            folded = shift = 0
            while True:
                byte = stream[at]
                at += 1
                folded |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            series.append((series[-1] if series else 0) + ((folded >> 1) ^ -(folded & 1)))
        found.append(series)
    assert at == len(stream)
    return found


def test_a_column_is_read_back_as_it_was_written() -> None:
    series = [[5, 5, -7, 300, 2**33], [0], [-1, 1 << 20]]
    values = np.array([value for one in series for value in one])
    assert decoded(encoded(values, np.array([0, 5, 6])), [5, 1, 2]) == series
    assert encoded(np.zeros(0, np.int64), np.zeros(0, np.int64)) == b""


def with_state(_run: PlannedRun, folder: Path) -> None:
    text = "t_us,flow,stream,name,value\n5000,stream1,0,alpha,0\n6000,stream1,0,alpha,0.25\n"
    (folder / "cca_state.csv").write_text(text, encoding="utf-8")


def test_the_explorer_has_every_sample_of_every_run(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    write_results(study, tmp_path, bend=with_state)
    build_dataset(tmp_path)
    judge_study(tmp_path, study)
    plan, dataset = read_lock(tmp_path / "lock.json"), load_dataset(tmp_path)
    raw = zlib.decompress(base64.b64decode(explorer_data(plan, dataset, {"fig-1": ("delay",)})))
    length = int.from_bytes(raw[:4], "little")
    told, rest = json.loads(raw[4 : 4 + length]), raw[4 + length :]
    columns = {}
    for name, size in told["columns"]:
        columns[name], rest = rest[:size], rest[size:]
    assert list(columns) == list(COLUMNS) and rest == b""
    lengths = [count for *_, count in told["sockets"]]
    windows = decoded(columns["cwnd_segments"], lengths)
    times = decoded(columns["t_ms"], lengths)
    for (run, flow, stream, _), t_ms, segments in zip(told["sockets"], times, windows, strict=True):
        run_id = next(one.run_id for one in plan.runs if one.run_id.startswith(told["specs"][run]["id"]))
        table = dataset.sockets(run_id, flow)
        own = table["stream"] == stream
        assert segments == table["cwnd_segments"][own].tolist()
        assert t_ms == pytest.approx(table["t_us"][own] / 1000, abs=0.5)
    assert {run["experiment"] for run in told["runs"]} == {"delay", "one-drop"}
    lengths = [count for *_, count in told["states"]]
    assert all(name == "alpha" for _, _, _, name, *_ in told["states"]) and lengths
    for (*_, power, _), values in zip(told["states"], decoded(columns["state_values"], lengths), strict=True):
        assert [value * 10.0**power for value in values] == pytest.approx([0.0, 0.25])
    assert any("dropped: packet 100 after 1.5 s" in line for line in told["texts"])


def test_what_failed_stands_for_a_claim_before_what_is_open_or_has_no_data() -> None:
    words: tuple[Outcome, ...] = ("holds", "no_data", "undecided", "fails")
    told = [Evidence(word, "", "", word, mean=1.0) for word in words]
    instead = Evidence("instead: of it", "", "", "fails", mean=2.0)
    for kept in range(len(told), 0, -1):
        deciding = verdict("one", "Results", "not_reproduced", instead, *told[:kept]).deciding
        assert deciding is told[0 if kept == 1 else kept - 1]
    assert verdict("one", "Results", "not_reproduced", instead).deciding is None
