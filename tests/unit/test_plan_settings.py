# SPDX-License-Identifier: Apache-2.0
"""Settings of the points of a study, and the expanded plan."""

from __future__ import annotations

from pathlib import Path

import yaml
from fabricated_results import write_study
from tiny_study import call

from longfat.plan.settings import Setting, expanded, settings
from longfat.study.load import load_study


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
