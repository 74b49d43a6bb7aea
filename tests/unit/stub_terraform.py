# SPDX-License-Identifier: Apache-2.0
"""Stands in for Terraform on a lab with one host: plans, applies and keeps a state as it does, and makes nothing.

Its first argument is a folder: what it was called with is noted there in `calls`; a file `VERB.fails` there makes a
verb fail with that file's text.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

MACHINE = 'some_machine.this["sender"]'
HOST = {
    "name": "sender",
    "role": "sender",
    "ssh": {"address": "192.0.2.1", "port": 22, "user": "root", "host_key": "ssh-ed25519 AAAA"},
    "nics": [{"link": "wire", "mac": "52:54:00:00:00:01", "pci": None, "vlan": None}],
    "placement": {"provider": "stub", "location": None, "machine_type": None, "id": None},
}


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main() -> int:
    behaviour, chdir, verb, *arguments = sys.argv[1:]
    lab = Path(os.environ["TF_DATA_DIR"]).parent
    state = lab / "terraform.tfstate"
    environment = Path(chdir.removeprefix("-chdir=")).name
    tags = json.loads((lab / "lab.tfvars.json").read_text())["tags"]
    with (Path(behaviour) / "calls").open("a") as calls:
        calls.write(f"{verb}\n")
    Path(os.environ["TF_DATA_DIR"]).mkdir(exist_ok=True)
    reason = Path(behaviour) / f"{verb}.fails"
    if reason.exists() and verb != "apply":
        sys.stderr.write(f"Error: {reason.read_text()}\n")
        return 1
    there = len(json.loads(state.read_text())["resources"]) if state.exists() else 0
    if verb == "plan":
        wanted = 0 if "-destroy" in arguments else 2
        if there == wanted:
            return 0
        action = "create" if wanted else "delete"
        plan = {
            "variables": {"tags": {"value": tags}},
            "planned_values": {
                "outputs": {"machines": {"value": {"sender": {"role": "sender", "machine_type": "big"}}}}
            },
            "resource_changes": [
                {"address": MACHINE, "change": {"actions": [action]}},
                {"address": "some_network.this", "change": {"actions": ["no-op"]}},
            ],
        }
        [out] = [word.removeprefix("-out=") for word in arguments if word.startswith("-out=")]
        Path(out).write_text(json.dumps(plan))
        return 2
    if verb == "show":
        say(Path(arguments[-1]).read_text())
    if verb == "apply":
        plan = json.loads(Path(arguments[-1]).read_text())
        said = {"type": "any", "value": {"environment": environment, "tags": tags}}
        lab_itself = {"mode": "managed", "type": "terraform_data", "name": "lab"}
        resources = [
            {**lab_itself, "instances": [{"attributes": {"input": said}}]},
            {"mode": "managed", "type": "some_machine", "name": "this", "instances": [{"attributes": {}}]},
        ]
        creates = plan["resource_changes"][0]["change"]["actions"] == ["create"]
        if reason.exists():
            state.write_text(json.dumps({"resources": resources[:1]}))
            diagnostic = {"detail": reason.read_text(), "address": MACHINE}
            say(json.dumps({"type": "diagnostic", "@message": "Error: refused", "diagnostic": diagnostic}))
            return 1
        state.write_text(json.dumps({"resources": resources if creates else []}))
        say(json.dumps({"type": "apply_complete", "@message": f"{MACHINE}: complete"}))
        say(json.dumps({"type": "outputs", "@message": "Outputs: 1"}))
    if verb == "output":
        tags = {"expires": None, **tags}
        say(json.dumps({"format": 1, "environment": environment, "tags": tags, "hosts": [HOST]}))
    return 0


sys.exit(main())
