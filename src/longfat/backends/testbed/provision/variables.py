# SPDX-License-Identifier: Apache-2.0
"""Variables of a lab: the user's, from a YAML file, the defaults, and the lab's expiry."""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import Template
from typing import Any

from longfat.backends.testbed.folder import CHOSEN, EXPIRES, GIVEN, KEY, VARIABLES
from longfat.backends.testbed.inventory import WORKER
from longfat.backends.testbed.provision.terraform import Price
from longfat.builds.disk import build_disk
from longfat.builds.programs import require_programs
from longfat.study.schema.names import Finding, nearest
from longfat.study.schema.source import Source, read_source
from longfat.system.cache import HOME
from longfat.system.errors import RigError, StudyError
from longfat.system.files import write_whole

INFRA = HOME / "infra"
EXAMPLES = INFRA / "labs"  # an example of the variables of each environment
OWN_KEYS = ("id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub")
OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._-]{0,62}")
YEAR_HOURS = 8760
END = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)  # as in infra/inventory.schema.json
HOST = re.compile(r"(?:([A-Za-z_][\w.-]*)@)?([A-Za-z0-9][A-Za-z0-9.-]*)(?::(\d{1,5}))?")
_EXAMPLE = "`./just lab init ENVIRONMENT` writes a commented example"


@dataclass(frozen=True)
class Ceiling:
    """The user's limits of a lab's life in hours and of its cost; None means no limit."""

    hours: float | None = None
    cost: float | None = None

    def life(self, price: Price) -> timedelta | None:
        """Return the longest life, or None without a limit.

        Raises StudyError if a needed price is unknown, or if the life is not between 0 and a year.
        """
        if self.cost is not None and not price.hourly:
            raise StudyError("a highest cost needs the price of an hour (--hourly-price)", where="--max-cost")
        hours = [self.hours] if self.hours is not None else []
        hours += [self.cost / price.hourly] if self.cost is not None and price.hourly else []
        if not hours:
            return None
        if min(hours) > YEAR_HOURS or not all(life > 0 for life in hours):  # of nan neither is true
            allowed = f"allowed: more than 0, up to {YEAR_HOURS} (a year)"
            raise StudyError(f"the lab's life would be {min(hours):g} h; {allowed}", where="--max-hours, --max-cost")
        return timedelta(hours=min(hours))


def read_variables(folder: Path) -> Source:
    """Return the user's variables for the lab in ``folder``, none without a file. Raises StudyError."""
    path = folder / VARIABLES
    if not path.exists():
        return Source(str(path), {})
    source = read_source(path, "lab's variables")
    if not isinstance(source.data, dict):
        raise StudyError("not a mapping of variables", where=str(path), hint=_EXAMPLE)
    refuse(source, source.findings, "the lab's variables are wrong")
    return source


def refuse(source: Source, findings: list[Finding], message: str) -> None:
    """Raise StudyError if there are findings, with the line of each."""
    if findings:
        problems = tuple(source.problem(finding) for finding in findings)
        raise StudyError(message, problems=problems, hint=_EXAMPLE)


def give_variables(folder: Path, module: Path, life: timedelta | None, now: datetime, *, rented: bool) -> None:
    """Write all variables of the lab for Terraform, with an expiry at most ``life`` from ``now``.

    Without ``life`` an earlier limit stays. Terraform itself checks values, but only warns about unknown names. Raises
    StudyError with every problem.
    """
    source = read_variables(folder)
    chosen = read_json(folder / CHOSEN)
    declared = _check_names(source, module, chosen)
    if life is not None:
        chosen[EXPIRES] = f"{now + life:%Y-%m-%dT%H:%M:%SZ}"
        write_whole(folder / CHOSEN, json.dumps(chosen, indent=2) + "\n", 0o600)
    ceiling = chosen.pop(EXPIRES, None)
    before = read_json(folder / GIVEN)
    if "name" in declared and (not before or "name" in before):  # a standing lab keeps its name
        own = re.sub("[^a-z0-9-]+", "-", f"lf-{folder.name}".lower())[:16]
        chosen = {"name": own, **chosen}
    values = {**chosen, **source.data}
    tags = values.get("tags")
    if isinstance(tags, dict):
        ends = [end for end in (tags.get("expires"), ceiling) if end]
        if wrong := [end for end in ends if not (isinstance(end, str) and END.fullmatch(end))]:
            message = f"{wrong[0]!r} is not a time in UTC such as 2030-01-31T18:00:00Z"
            refuse(source, [Finding(("tags", "expires"), message)], "the lab's variables are wrong")
        values["tags"] = {**tags, **({"expires": min(ends)} if ends else {})}  # of one form: sorted as text
        if rented and not ends:
            raise StudyError(
                "a rented lab needs an end", where=f"{source.file}: tags.expires", hint="state it, or --max-hours"
            )
    write_whole(folder / GIVEN, json.dumps(values, indent=2) + "\n", 0o600)


def _check_names(source: Source, module: Path, chosen: Mapping[str, Any]) -> Collection[str]:
    """Return the names of the module's variables. Raises StudyError if one is missing or unknown."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(module.glob("*.tf")))
    declared = dict(re.findall(r'^variable "(\w+)" {\n(.*?)^}', text, flags=re.MULTILINE | re.DOTALL))
    required = {name for name, body in declared.items() if not re.search(r"^  default\s*=", body, flags=re.MULTILINE)}
    findings = [Finding((name,), "missing") for name in sorted(required - source.data.keys() - chosen.keys())]
    for name in sorted(source.data.keys() - declared.keys()):
        findings.append(Finding((name,), "unknown variable", nearest(name, declared)))
    refuse(source, findings, f"wrong variables of environment {module.name}")
    return declared


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object of an earlier command, empty if there is no file. Raises RigError."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("not a JSON object")
        return found
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise RigError(
            f"a generated file is damaged: {error}", where=str(path), hint="remove it, and repeat"
        ) from error


def write_example(folder: Path, environment: str, hosts: tuple[str, ...]) -> Path:
    """Write a commented example of an environment's variables, with this user's name and key; return its path.

    ``hosts`` are machines that become workers, each [USER@]ADDRESS[:PORT]. Raises StudyError if there is a file
    already, or a host is not of this form.
    """
    target = folder / VARIABLES
    if target.exists():
        raise StudyError("this lab has variables already", where=str(target), hint="edit them, or choose another --lab")
    found = [HOST.fullmatch(host) for host in hosts]
    if wrong := [host for host, match in zip(hosts, found, strict=True) if not match or int(match[3] or 1) > 65535]:
        raise StudyError(f"not hosts: {', '.join(wrong)}", where="--host", hint="allowed: [USER@]ADDRESS[:PORT], IPv4")
    text = (EXAMPLES / f"{environment}.yaml").read_text(encoding="utf-8")
    if hosts:
        before, mark, _ = text.partition("\nhosts:\n")
        workers = [_worker(number, match) for number, match in enumerate(found, 1) if match]
        text = before + mark + "".join(workers)
    facts = {
        "owner": json.dumps(owner()),
        "key": json.dumps(_own_key(), ensure_ascii=False),
        "expires": f"{datetime.now(UTC) + timedelta(hours=8):%FT%H:00:00Z}",
    }
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(target, Template(text).substitute(facts), 0o600)
    return target


def _worker(number: int, match: re.Match[str]) -> str:
    user, address, port = match.groups()
    ssh = [f'address: "{address}"', f'user: "{user or owner()}"', *([f"port: {port}"] if port else [])]
    return f"  worker{number}: {{role: worker, ssh: {{{', '.join(ssh)}}}}}\n"


def owner() -> str:
    """Return the name of this user as a tag."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        name = ""  # no account here has this number
    return name if OWNER.fullmatch(name) else f"uid-{os.geteuid()}"


def _own_key() -> str:
    for name in OWN_KEYS:
        path = Path("~/.ssh").expanduser() / name
        if path.is_file():
            return path.read_text(encoding="utf-8", errors="replace").strip()
    return "ssh-ed25519 AAAA you have no key yet (ssh-keygen -t ed25519)"


PACKAGES = {"qemu-system-x86_64": "qemu-system-x86", "ssh-keygen": "openssh-client"}  # Debian package of each program
ROLES = ("receiver", "router", "sender")
FIRST_PORT, LAST_PORT = 22201, 32767  # below the ports that Linux assigns by itself
FOLDER_BYTES = 70  # the environment's limit, because of the length of socket names


def choose_variables(folder: Path, workers: int, say: Callable[[str], None]) -> None:
    """Write the variables and the key of a lab into ``folder``, which is created.

    The lab has this number of workers, or with 0 three small machines for paths.

    Raises RigError if a program is missing or the disk cannot be built, StudyError if the folder's path is unsuitable.
    """
    require_programs(PACKAGES, "local machines")
    machines = folder / "machines"
    if len(os.fsencode(machines)) > FOLDER_BYTES or not re.fullmatch(r"/[A-Za-z0-9._/-]+", str(machines)):
        raise StudyError(
            f"the path of the machines' folder is longer than {FOLDER_BYTES} bytes, the limit for sockets, or has"
            " characters other than letters, digits and . _ -",
            where=str(machines),
            hint="choose another folder for labs with LONGFAT_LABS",
        )
    image = build_disk(say=say)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    variables = {
        "tags": {"study": "any", "owner": owner()},
        "folder": str(machines),
        "image": str(image),
        **_machines(workers),
        "ssh_public_key": _public_key(folder / KEY),
        "boot_timeout_s": 900,  # emulation on a busy machine
    }
    write_whole(folder / CHOSEN, json.dumps(variables, indent=2) + "\n", 0o600)


def _machines(workers: int) -> dict[str, Any]:
    names = {f"worker{number + 1}": WORKER for number in range(workers)} or {role: role for role in ROLES}
    size = {"cpus": 1, "memory_mib": 2048 if workers else 512}
    ports = zip(names.items(), free_ports(len(names)), strict=True)
    hosts = {name: {"role": role, "ssh_port": port, **size} for (name, role), port in ports}
    return {"hosts": hosts} | ({"links": {}, "isolated": False} if workers else {})


def free_ports(count: int) -> Iterator[int]:
    """Yield free ports of the loopback address. Raises RigError if there are too few."""
    for port in range(FIRST_PORT, LAST_PORT + 1):
        if count == 0:
            return
        with socket.socket() as door:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as in QEMU
            try:
                door.bind(("127.0.0.1", port))
            except OSError:
                continue
        count -= 1
        yield port
    if count:
        raise RigError(f"no free port for SSH from {FIRST_PORT} to {LAST_PORT} of 127.0.0.1")


def _public_key(key: Path) -> str:
    """Return the lab's public key, after generating a missing pair."""
    if not key.exists():
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"longfat-{key.parent.name}", "-f", str(key)]
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise RigError(f"ssh-keygen made no key: {done.stderr.strip()}")
    try:
        return key.with_suffix(".pub").read_text().strip()
    except OSError as error:
        raise StudyError(f"the public half of the lab's key is unreadable: {error}", where=str(key)) from error
