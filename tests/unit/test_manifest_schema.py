# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema for editors and the generated reference follow the models."""

import json
from pathlib import Path

from longfat.manifest import json_schema
from longfat.manifest.reference import reference

ROOT = Path(__file__).parents[2]


def test_the_schema_is_plain_json_and_closed() -> None:
    schema = json.loads(json.dumps(json_schema()))
    assert schema["additionalProperties"] is False
    assert "format" in schema["required"]
    assert schema["$defs"]["Flow"]["required"] == ["name", "from", "to", "algorithm", "duration"]


def test_the_schema_admits_a_reference_in_place_of_a_swept_value() -> None:
    definitions = json_schema()["$defs"]
    for name, key in (("Flow", "streams"), ("Delay", "rtt"), ("Hosts", "txqueuelen"), ("Drop", "at")):
        assert {"$ref": "#/$defs/Reference"} in definitions[name]["properties"][key]["anyOf"]
    assert "anyOf" not in definitions["Experiment"]["properties"]["id"]


def test_the_schema_words_defaults_as_a_manifest_does() -> None:
    definitions = json_schema()["$defs"]
    assert definitions["Direct"]["properties"]["rtt"]["default"] == "100 us"
    assert definitions["Dumbbell"]["properties"]["bottleneck_queue"]["default"] == {
        "kind": "pfifo",
        "limit": 100,
    }


def test_the_committed_reference_is_what_the_models_give() -> None:
    assert (ROOT / "docs" / "manifest.md").read_text(encoding="utf-8") == reference()
