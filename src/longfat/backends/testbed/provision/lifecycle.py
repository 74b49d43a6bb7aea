# SPDX-License-Identifier: Apache-2.0
"""Steps in the life of a lab: prepare its variables, write its inventory, prepare its machines, remove its files.

Asks no questions: the caller asks the user between steps.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from longfat.backends.registry import DEFAULT_BACKEND, open_backend
from longfat.backends.testbed.folder import (
    ANSIBLE_INVENTORY,
    CHOSEN,
    GIVEN,
    INVENTORY,
    KEY,
    KNOWN_HOSTS,
    PLAN,
    SETTINGS,
    STATE,
    TERRAFORM_DATA,
    VARIABLES,
)
from longfat.backends.testbed.inventory import WORKER, load_inventory
from longfat.backends.testbed.provision.existing import EXISTING
from longfat.backends.testbed.provision.labs import MODULES, RENTED, Lab
from longfat.backends.testbed.provision.settings import read_settings
from longfat.backends.testbed.provision.terraform import Terraform, find_program, interrupts_for_child
from longfat.backends.testbed.provision.variables import (
    INFRA,
    choose_variables,
    give_variables,
    read_json,
    read_variables,
)
from longfat.builds.kernel import build_kernel
from longfat.builds.kernel_targets import X86_64
from longfat.builds.programs import require_programs
from longfat.system.cache import cache_folder
from longfat.system.errors import RigError, StudyError
from longfat.system.files import file_sha256, write_whole
from longfat.system.locks import hold
from longfat.system.store import holder

ANSIBLE = INFRA / "ansible"
KERNEL = "kernel_booted_package"
# Options of ansible-playbook, which takes beginnings of names, and letters together. The idle ones change nothing.
IDLE = re.compile(r"-[vDbkK]*C\w*|--(ch|sy|list-)[a-z-]*")
LIMIT = re.compile(r"-[vDbkK]*l.*|--li.*")
TAGS = re.compile(r"-[vDbkK]*t.*|--tag.*")
LOOK = "preflight"  # tag of the tasks that check whether a machine can be prepared
GENERATED = (PLAN, CHOSEN, GIVEN, INVENTORY, ANSIBLE_INVENTORY, KNOWN_HOSTS, STATE, f"{STATE}.backup")
ROOT = Path(__file__).resolve().parents[5]
CODE = ("src", "kernels", "images", "pyproject.toml", "requirements.lock", "requirements-cluster.lock", "LICENSE")
SSH = {"ssh": "openssh-client", "ssh-keygen": "openssh-client"}
KERNEL_FILES = ("kernel.json", "linux")
Say = Callable[[str], None]


@contextmanager
def lock_lab(lab: Lab) -> Iterator[None]:
    """Lock the lab for one command, and remove the plan, which contains all variables, at the end.

    Raises RigError if another command holds the lock, or a file of the lab cannot be used, as on a full disk.
    """
    with ExitStack() as own:
        try:
            if lab.folder.exists():
                own.enter_context(hold(lab.folder, wait=False, folder=True))
            own.callback((lab.folder / PLAN).unlink, missing_ok=True)
            yield
        except BlockingIOError:
            raise RigError(f"{holder(lab.folder)} uses the lab {lab.name}", hint="wait until it ends") from None
        except OSError as error:
            raise RigError(
                f"a file of the lab {lab.name} cannot be used: {error.strerror}",
                where=str(error.filename or lab.folder),
                hint="then repeat the command; Terraform's state is kept",
            ) from error


def prepare(lab: Lab, say: Say, workers: int, life: timedelta | None, now: datetime) -> None:
    """Write the lab's variables, with an expiry at most ``life`` from ``now``. Raises StudyError, RigError.

    With ``workers`` the lab has this number of machines, which execute runs in virtual time.
    """
    assert lab.environment is not None
    if re.search(r"\s", str(lab.folder)):
        raise StudyError("ssh takes no path with a blank", where=str(lab.folder), hint="set LONGFAT_LABS")
    require_programs(SSH, "labs")
    if lab.environment == EXISTING:
        if workers or life:
            where = "--workers" if workers else "--max-hours, --max-cost"
            raise StudyError("the machines exist already", where=where, hint=f"{VARIABLES} lists them, by role")
        return
    find_program()
    if workers and "hosts" in read_variables(lab.folder).data:
        raise StudyError(f"{VARIABLES} states the hosts already", where="--workers", hint="state them in one place")
    if lab.environment == "local" and lab.standing is None:
        choose_variables(lab.folder, workers, say)
    elif workers:
        _choose_workers(lab, workers)
    give_variables(lab.folder, MODULES[lab.environment], life, now, rented=lab.environment in RENTED)


def _choose_workers(lab: Lab, count: int) -> None:
    """Write workers into the chosen variables, next to a former ceiling. Raises StudyError for a standing local lab."""
    chosen = read_json(lab.folder / CHOSEN)
    if lab.environment == "local":
        if [host["role"] for host in chosen.get("hosts", {}).values()] == [WORKER] * count:
            return
        message, hint = f"the lab {lab.name} has other machines", f"{lab.command('down')}, then repeat"
        raise StudyError(message, where="--workers", hint=hint)
    chosen["hosts"] = {f"worker{number + 1}": {"role": WORKER} for number in range(count)}
    if lab.environment != "aws":  # EC2 has no links anyway
        chosen["links"] = {}
    lab.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(lab.folder / CHOSEN, json.dumps(chosen, indent=2) + "\n", 0o600)


def ready_terraform(lab: Lab, again: str, say: Say) -> Terraform:
    """Return an initialised Terraform for the lab. Raises RigError."""
    assert lab.environment is not None
    terraform = Terraform(find_program(), MODULES[lab.environment], lab.folder, again)
    say(f"terraform: lab {lab.name} in {lab.folder}")
    terraform.initialise()
    return terraform


def note_inventory(lab: Lab, inventory: dict[str, Any]) -> None:
    """Write the inventory and, from it, known_hosts. Raises RigError if a host's key is unknown."""
    write_whole(lab.folder / INVENTORY, json.dumps(inventory, indent=2) + "\n", 0o600)
    command: list[str | Path] = [sys.executable, ANSIBLE / "lab_inventory.py", lab.folder / INVENTORY, lab.folder]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RigError(
            f"the lab is up, but its hosts cannot be reached yet:\n{done.stderr.strip()}",
            where=str(lab.folder / INVENTORY),
            hint=f"then: {lab.command('up')}",
        )


def provision(lab: Lab, options: Sequence[str], say: Say, confirm: Say) -> None:
    """Prepare the hosts with the roles of infra/ansible, after ``confirm`` if they restart into another kernel.

    Raises RigError if the lab is not up, the kernel cannot be built or a host fails, StudyError on unreadable settings.
    """
    if not (lab.folder / INVENTORY).exists():
        raise RigError(f"the lab {lab.name} is not up", where=str(lab.folder / INVENTORY), hint=lab.command("up"))
    argv: list[str | Path] = [ANSIBLE / "provision", lab.folder / INVENTORY, lab.folder]
    if (lab.folder / KEY).exists():
        argv += ["--private-key", lab.folder / KEY]
    own = [MODULES[lab.environment] / SETTINGS] if lab.environment in MODULES else []
    settings = [path for path in (*own, lab.folder / SETTINGS) if path.exists()]
    argv += [word for path in settings for word in ("--extra-vars", f"@{path}")]
    hosts = load_inventory(lab.folder / INVENTORY)["hosts"]
    workers = any(host["role"] == WORKER for host in hosts)
    stated = [found[KERNEL] for path in settings if KERNEL in (found := read_settings(path))]
    kernel = "" if workers else str(stated[-1] if stated else build_kernel(X86_64, say=say).path)
    if not workers and not stated:
        argv += ["--extra-vars", json.dumps({KERNEL: kernel})]
    if kernel and not any(map(IDLE.fullmatch, options)):
        if any(map(TAGS.fullmatch, options)):
            raise StudyError("these tasks would start before the question", where="--tags", hint="leave it out")
        _run_playbook(lab, [*argv, *options, "--tags", LOOK])
        most = "up to " if any(map(LIMIT.fullmatch, options)) else ""
        confirm(f"{most}{len(hosts)} machines restart, unless {Path(kernel).name} runs there already")
        options = [*options, "--skip-tags", LOOK]
    with tempfile.TemporaryDirectory(prefix=".provision-", dir=lab.folder) as scratch:
        if workers:
            argv += ["--extra-vars", json.dumps(pack_worker(Path(scratch) / "worker.tar.gz", say))]
        _run_playbook(lab, [*argv, *options])


def _run_playbook(lab: Lab, argv: Sequence[str | Path]) -> None:
    """Start Ansible. Raises RigError with the machines that were not prepared."""
    with tempfile.TemporaryDirectory(prefix=".retry-", dir=lab.folder) as scratch:
        retry = {"ANSIBLE_RETRY_FILES_ENABLED": "1", "ANSIBLE_RETRY_FILES_SAVE_PATH": scratch}
        with interrupts_for_child():
            status = subprocess.run(argv, env={**os.environ, **retry}, check=False).returncode
        failed = ",".join(line for path in Path(scratch).glob("*.retry") for line in path.read_text().split())
    if failed:
        again = f"{lab.command('provision')} -- --limit {failed}"
        raise RigError(f"not prepared: {failed}; see the message above", hint=f"then: {again}")
    if status != 0:
        raise RigError(
            f"infra/ansible/provision ended with exit status {status}; see its message above",
            hint=f"if the inventory is damaged, {lab.command('up')} writes it again",
        )


def remove_files(lab: Lab) -> tuple[str, ...]:
    """Remove the generated files of a destroyed lab, and its folder if it is empty; return the names of the rest."""
    keys = (KEY, f"{KEY}.pub") if lab.environment == "local" else ()  # otherwise the key is the user's
    for name in (*keys, *GENERATED):
        (lab.folder / name).unlink(missing_ok=True)
    shutil.rmtree(lab.folder / TERRAFORM_DATA, ignore_errors=True)
    rest = tuple(sorted(path.name for path in lab.folder.iterdir()))
    if not rest:
        lab.folder.rmdir()
    return rest


def pack_worker(target: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Write the archive, with paths relative to the worker user's home; return the variables of the role ``worker``.

    A missing kernel or image is built first. Raises RigError if a build fails.
    """
    pins = open_backend(DEFAULT_BACKEND, {}, say=say).pins()
    say(f"packing code, kernels and image for the workers into {target}")
    cache = cache_folder()
    with (
        target.open("wb") as file,
        gzip.GzipFile("", "wb", compresslevel=1, fileobj=file, mtime=0) as packed,  # equal content gives equal bytes
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name in CODE:
            archive.add(ROOT / name, f"longfat/{name}", filter=_without_bytecode)
        for kernel in sorted(cache.glob("kernels/[!.]*/linux")):
            for name in KERNEL_FILES:
                path = kernel.with_name(name)
                archive.add(path, f".cache/longfat/{path.relative_to(cache)}")
        for image in sorted(cache.glob("images/[!.]*/image.json")):
            archive.add(image.parent, f".cache/longfat/{image.parent.relative_to(cache)}")
    return {"worker_archive": str(target), "worker_sha256": file_sha256(target), "worker_pins": pins}


def _without_bytecode(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if member.name.endswith("__pycache__") else member
