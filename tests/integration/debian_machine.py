# SPDX-License-Identifier: Apache-2.0
"""One virtual machine of QEMU with the disk of images/machine, reached by SSH with keys made for it.

Owns the process and its files. Must not assert anything.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from needs import free_ports

PATIENCE_S = 600  # emulation on a busy machine; an idle one takes half a minute
LINKS = {"left": "52:54:00:00:00:01", "right": "52:54:00:00:00:02"}


class DebianMachine:
    """A router of a lab, as a context: it runs inside, and its process is gone afterwards."""

    def __init__(self, disk: Path, folder: Path) -> None:
        self.folder = folder
        self.console = folder / "console.log"
        self.key = folder / "id_ed25519"
        self._disk = disk
        self._process: subprocess.Popen[bytes] | None = None
        (self.port,) = free_ports(1)

    def __enter__(self) -> DebianMachine:
        for name, comment in ((self.key, "user"), (self.folder / "ssh_host_ed25519_key", "host")):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", name], check=True)
        (self.folder / "authorized_keys").write_text(self.key.with_suffix(".pub").read_text())
        seed = ["authorized_keys", "ssh_host_ed25519_key", "ssh_host_ed25519_key.pub"]
        subprocess.run(["tar", "-cf", "seed.tar", *seed], cwd=self.folder, check=True)
        copy = ["cp", "--sparse=always", str(self._disk), str(self.folder / "disk.raw")]
        subprocess.run(copy, check=True)
        self._process = subprocess.Popen(self._command(), stdin=subprocess.DEVNULL)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
        (self.folder / "disk.raw").unlink()

    def wait(self) -> None:
        """Until SSH answers. Raises RuntimeError with the console when it never does."""
        self._wait_until(self._greets, "SSH does not answer")

    def wait_for_kernels(self, *releases: str) -> None:
        """Until these are the kernels that were started last, and SSH answers."""
        count = len(releases)
        self._wait_until(
            lambda: self.started_kernels()[-count:] == list(releases), f"{' and '.join(releases)} do not start"
        )
        self.wait()

    def started_kernels(self) -> list[str]:
        """The release of each kernel that wrote to the console, in the order of their starts."""
        return re.findall(r"Linux version (\S+)", self.console.read_text(errors="replace"))

    def _greets(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def ask(self, command: str) -> str:
        """Return the output of a command on the machine."""
        options = ["-o", f"UserKnownHostsFile={self.folder}/lab/known_hosts", "-o", "StrictHostKeyChecking=yes"]
        argv = ["ssh", "-i", str(self.key), "-p", str(self.port), *options, "root@127.0.0.1", command]
        done = subprocess.run(argv, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{command}: {done.stderr}")
        return done.stdout.strip()

    def write_inventory(self) -> None:
        """The file that Terraform would write: this machine is the router, sender and receiver do not exist."""
        host_key = " ".join((self.folder / "ssh_host_ed25519_key.pub").read_text().split()[:2])

        def host(role: str, port: int, links: dict[str, str]) -> dict[str, Any]:
            return {
                "name": role,
                "role": role,
                "ssh": {"address": "127.0.0.1", "port": port, "user": "root", "host_key": host_key},
                "nics": [{"link": link, "mac": mac, "pci": None, "vlan": None} for link, mac in links.items()],
                "placement": {"provider": "qemu", "location": None, "machine_type": None, "id": None},
            }

        ends = zip(("sender", "receiver"), LINKS, strict=True)
        others = [host(role, number, {link: "52:54:00:ff:ff:ff"}) for number, (role, link) in enumerate(ends, 1)]
        inventory = {
            "format": 1,
            "environment": "local",
            "tags": {"study": "test", "owner": "test", "expires": None},
            "hosts": [host("router", self.port, LINKS), *others],
        }
        (self.folder / "inventory.json").write_text(json.dumps(inventory))

    def _wait_until(self, done: Callable[[], bool], complaint: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and self._process is not None and self._process.poll() is None:
            if done():
                return
            time.sleep(1)
        raise RuntimeError(f"{complaint}\n{self.console.read_text(errors='replace')[-4000:]}")

    def _command(self) -> list[str]:
        door = f"hostfwd=tcp:127.0.0.1:{self.port}-:22"
        # The cards of the data plane are of another driver than that of SSH, one whose rings can be set.
        cards: list[str] = []
        for number, (link, mac) in enumerate(LINKS.items()):
            cards += ["-netdev", f"user,id={link},restrict=on,ipv6=off,net=192.168.{number}.0/24"]
            cards += ["-device", f"e1000,netdev={link},mac={mac}"]
        return [
            *("qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-machine", "q35", "-smp", "1", "-m", "1024"),
            *("-nodefaults", "-no-user-config", "-display", "none", "-device", "virtio-rng-pci"),
            *("-chardev", f"file,id=console,path={self.console}", "-serial", "chardev:console"),
            *(
                "-drive",
                f"file={self.folder}/disk.raw,format=raw,if=none,id=root",
                "-device",
                "virtio-blk-pci,drive=root",
            ),
            *("-drive", f"file={self.folder}/seed.tar,format=raw,if=none,id=seed,readonly=on"),
            *("-device", "virtio-blk-pci,drive=seed,serial=longfat-seed"),
            *("-netdev", f"user,id=ssh,restrict=on,ipv6=off,net=192.168.127.0/24,{door}"),
            *("-device", "virtio-net-pci,netdev=ssh"),
            *cards,
        ]
