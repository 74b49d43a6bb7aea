# SPDX-License-Identifier: Apache-2.0
"""Verification: a sample of the evidence runs again; differing runs are named and kept from both sides."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from evidenced import change, committed, file_of, printed

from longfat.cli.paths import repository_root
from longfat.cli.reproduce import reproduce
from longfat.cli.sample import repeat_sample, rows_that_count, within
from longfat.cli.verdicts import studies_with_evidence
from longfat.evidence.baselines import FOLDER, read_baselines
from longfat.evidence.compare import sample_of


def verified(sample: str = "99", seed: int = 1) -> tuple[bool, str]:
    """Return whether the sample is identical, and the printed text."""
    outcome: list[bool] = []
    text = printed(lambda console: outcome.append(repeat_sample(None, sample, seed, None, 1, console)))
    return outcome[0], text


def test_evidence_that_anyone_runs_again_is_identical_to_the_byte(evidence_study: Path) -> None:
    same, text = verified()
    assert same
    assert "9 of 9 runs" in text
    assert "9 of 9 repeated here, byte-identical" in text


def test_a_differing_value_is_named_and_both_sides_are_kept(evidence_study: Path, tmp_path: Path) -> None:
    path = file_of(evidence_study, "one-drop")
    value = json.loads(path.read_text().splitlines()[1])["values"]
    (key,) = (name for name in value if name.startswith("drop_ratio"))
    change(path, str(value[key]), "0.9")
    same, text = verified()
    assert not same
    assert "8 of 9 repeated here, byte-identical" in text
    assert "unverified" in text
    assert f"{key} is 0.9 in the evidence and {value[key]} here" in text
    (kept,) = (tmp_path / "results" / "verify" / "differing" / "small").iterdir()
    assert json.loads((kept / "evidence.json").read_text())["values"][key] == 0.9
    assert (kept / "here" / "SHA256SUMS").exists() and (kept / "before" / "SHA256SUMS").exists()


@pytest.mark.parametrize(
    ("pattern", "other", "said"),
    [
        ('"measured":"', '"measured":"0', "every value is equal, but the digest of the measurements is 0"),
        (r'"values":{[^}]*}', '"values":{}', "the row has no value"),
    ],
)
def test_a_row_with_another_digest_or_without_values_differs(
    evidence_study: Path, pattern: str, other: str, said: str
) -> None:
    path = file_of(evidence_study, "one-drop")
    path.write_text(re.sub(pattern, other, path.read_text(encoding="ascii")), encoding="ascii")
    same, text = verified()
    assert not same and said in text


def test_a_sample_depends_on_its_seed_and_on_nothing_else() -> None:
    items = [("one", f"run {number}", number) for number in range(500)]
    assert sample_of(items, "10", 1) == sample_of(items[::-1], "10", 1)
    assert sample_of(items, "10", 1) != sample_of(items, "10", 2)
    assert len(sample_of(items, "1%", 1)) == 20
    assert len(sample_of(items, "10%", 1)) == 50
    assert len(sample_of(items[:7], "1%", 1)) == 7
    for wrong in ("0", "-1", "1.5", "101%", "many"):
        with pytest.raises(ValueError, match=r"not a sample|could not convert"):
            sample_of(items, wrong, 1)


def test_a_sample_has_runs_of_every_group_however_small_as_long_as_there_are_any() -> None:
    groups = {"large": range(1000), "small": range(1000, 1003), "other": range(2000, 2100)}
    items = [(group, f"run {number}", number) for group, numbers in groups.items() for number in numbers]
    drawn = sample_of(items, "20", 7)
    for turn in range(3):
        assert sorted(number // 1000 for number in drawn[3 * turn : 3 * turn + 3]) == [0, 1, 2]
    rest = Counter(number // 1000 for number in drawn[9:])
    assert rest.keys() == {0, 2} and sorted(rest.values()) == [5, 6]


def test_a_budget_leaves_out_the_runs_that_do_not_fit(evidence_study: Path) -> None:
    (folder,) = studies_with_evidence()
    kept = list(rows_that_count(folder, read_baselines(repository_root() / FOLDER)))
    first = kept[0].seconds
    assert within(kept, first + kept[1].seconds + 1e-6) == kept[:2]
    slow = [dataclasses.replace(one, row=dataclasses.replace(one.row, seconds=1e6)) for one in kept]
    assert within(slow, first) == slow[:1], "a row's own seconds decide nothing"


def test_a_sample_of_nothing_verifies_nothing(evidence_study: Path) -> None:
    outcome: list[bool] = []
    text = printed(lambda console: outcome.append(repeat_sample(None, "99", 1, -1.0, 1, console)))
    assert outcome == [False]
    assert "0 of 9 runs" in text


def test_reproduce_shows_the_verdicts_of_the_evidence_first_and_compares_with_it_at_the_end(
    evidence_study: Path,
) -> None:
    outcome: list[bool] = []
    text = printed(lambda out: outcome.append(reproduce(out, "small", profile="paper", backend="fake", jobs=1)))
    assert outcome == [True]
    assert text.index("9 runs. Runs can decide 2 claims") < text.index("9 kept")
    assert "evidence: 9 of 9 runs" in text


def test_a_row_that_is_new_since_the_parent_commit_is_drawn_first(evidence_study: Path, tmp_path: Path) -> None:
    path = file_of(evidence_study, "one-drop")
    lines = path.read_text(encoding="ascii").splitlines(keepends=True)
    path.write_text(lines[0], encoding="ascii")
    committed(tmp_path)
    path.write_text("".join(lines).replace('"seconds":0.0', '"seconds":9.0', 1), encoding="ascii")
    same, text = verified(sample="1")
    assert same and "1 of 1 runs that are new or changed" in text


@pytest.mark.parametrize("loss", ["row", "measured", "value", "file", "record"])
def test_whatever_is_gone_since_the_parent_commit_is_named(evidence_study: Path, tmp_path: Path, loss: str) -> None:
    committed(tmp_path)
    path = evidence_study / "criteria.jsonl" if loss == "record" else file_of(evidence_study, "delay")
    lines = path.read_text(encoding="ascii").splitlines(keepends=True)
    if loss == "file":
        path.unlink()
    elif loss in ("row", "record"):
        path.write_text("".join(lines[:-1]), encoding="ascii")
    elif loss == "measured":
        change(path, '"measured":"', '"measured":"0')
    else:
        path.write_text(re.sub(r'"values":{[^}]*}', '"values":{}', "".join(lines), count=1), encoding="ascii")
    same, text = verified()
    assert not same and f"gone since the parent commit: {path.relative_to(tmp_path)}" in text


def test_a_withdrawn_row_and_a_record_that_an_older_one_replaces_are_not_gone(
    evidence_study: Path, tmp_path: Path
) -> None:
    committed(tmp_path)
    change(evidence_study / "criteria.jsonl", '"day":"2', '"day":"1')
    path = file_of(evidence_study, "delay")
    lines = path.read_text(encoding="ascii").splitlines()
    last = json.loads(lines[-1])
    lines[-1] = json.dumps({**last, "values": {}, "withdrawn": "a wrong clock"})
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    same, text = verified()
    assert same and "gone since" not in text


def test_without_a_parent_commit_a_missing_row_is_not_named(evidence_study: Path) -> None:
    path = file_of(evidence_study, "delay")
    path.write_text("".join(path.read_text(encoding="ascii").splitlines(keepends=True)[:-1]), encoding="ascii")
    same, text = verified()
    assert same and "gone since" not in text


def test_the_sample_of_continuous_integration_does_not_depend_on_the_commit() -> None:
    text = (Path(__file__).parents[2] / ".ci/run").read_text(encoding="utf-8")
    line = re.search(r"^number=.*$", text, re.M)
    assert line and '--sample-seed "$number"' in text
    program = ["bash", "-euc", f"{line[0]}; echo $number"]
    seeds = [subprocess.run(program, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    repeated = subprocess.run(program, env={"CI_SEED": "77"}, capture_output=True, text=True, check=True).stdout
    assert seeds[0] != seeds[1] and repeated == "77\n"
