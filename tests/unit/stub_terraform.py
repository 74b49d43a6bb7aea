# SPDX-License-Identifier: Apache-2.0
"""Stub of Terraform for a lab: plans, applies and keeps a state, and makes nothing.

Its first argument is a folder: it notes its calls in `calls`; a file `VERB.fails` makes a verb fail with its text.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

MACHINE = 'some_machine.this["sender"]'
HOSTS = [
    {
        "name": role,
        "role": role,
        "ssh": {"address": f"192.0.2.{number}", "port": 22, "user": "root", "host_key": "ssh-ed25519 AAAA"},
        "nics": [{"link": "wire", "mac": "52:54:00:00:00:01", "pci": None, "vlan": None}],
        "placement": {"provider": "stub", "location": None, "machine_type": None, "id": None},
    }
    for number, role in ((1, "sender"), (2, "receiver"))
]


def plan(state: Path, tags: object, arguments: list[str]) -> int:
    wanted = 0 if "-destroy" in arguments else 2
    if (len(json.loads(state.read_text())["resources"]) if state.exists() else 0) == wanted:
        return 0
    action = "create" if wanted else "delete"
    data = {
        "variables": {"tags": {"value": tags}},
        "planned_values": {"outputs": {"machines": {"value": {"sender": {"role": "sender", "machine_type": "big"}}}}},
        "resource_changes": [
            {"address": MACHINE, "change": {"actions": [action]}},
            {"address": "some_network.this", "change": {"actions": ["no-op"]}},
        ],
    }
    [out] = [word.removeprefix("-out=") for word in arguments if word.startswith("-out=")]
    Path(out).write_text(json.dumps(data))
    return 2


def apply(state: Path, environment: str, tags: object, plan: Path, reason: Path) -> int:
    lab = {"type": "any", "value": {"environment": environment, "tags": tags}}
    resources = [
        {"mode": "managed", "type": "terraform_data", "name": "lab", "instances": [{"attributes": {"input": lab}}]},
        {"mode": "managed", "type": "some_machine", "name": "this", "instances": [{"attributes": {}}]},
    ]
    if reason.exists():
        state.write_text(json.dumps({"resources": resources[:1]}))
        sys.stderr.write(f"Error: {reason.read_text()}\n")
        return 1
    creates = json.loads(plan.read_text())["resource_changes"][0]["change"]["actions"] == ["create"]
    state.write_text(json.dumps({"resources": resources if creates else []}))
    sys.stdout.write(f"{MACHINE}: complete\n")
    return 0


def main() -> int:
    behaviour, chdir, verb, *arguments = sys.argv[1:]
    lab = Path(os.environ["TF_DATA_DIR"]).parent
    state = lab / "terraform.tfstate"
    environment = Path(chdir.removeprefix("-chdir=")).name
    tags = json.loads((lab / "given.tfvars.json").read_text())["tags"]
    with (Path(behaviour) / "calls").open("a") as calls:
        calls.write(f"{' '.join((verb, *arguments))}\n")
    Path(os.environ["TF_DATA_DIR"]).mkdir(exist_ok=True)
    reason = Path(behaviour) / f"{verb}.fails"
    if verb == "apply":
        return apply(state, environment, tags, Path(arguments[-1]), reason)
    if reason.exists():
        sys.stderr.write(f"Error: {reason.read_text()}\n")
        return 1
    if verb == "plan":
        return plan(state, tags, arguments)
    if verb == "show":
        sys.stdout.write(Path(arguments[-1]).read_text())
    if verb == "output":
        inventory = {"format": 1, "environment": environment, "tags": {"expires": None, **tags}, "hosts": HOSTS}
        sys.stdout.write(json.dumps(inventory))
    return 0


sys.exit(main())
