# SPDX-License-Identifier: Apache-2.0
"""Boots a packaged x86-64 kernel under QEMU, without KVM, on the project's image as its initial file system.

Owns the way of a question into the virtual machine and of its answer back. Must not assert anything.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

GUEST = Path(__file__).with_name("x86_64_guest.py")
PATIENCE_S = 600  # emulation on a busy machine; an idle one takes about one
MEMORY_MIB = 1024  # the image's 110 MB are there twice while they are unpacked
ANSWER_BYTES = 1 << 20


def unpack(package: Path, folder: Path) -> Path:
    """The content of the Debian package ``package``, in ``folder``; nothing is installed."""
    subprocess.run(["dpkg-deb", "--extract", str(package), str(folder)], check=True)
    return folder


def ask(kernel: Path, image: Path, question: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What the program x86_64_guest.py answers to ``question`` in a machine that runs ``kernel``.

    ``kernel`` is an unpacked package, ``image`` the root folder of a userland; ``folder`` takes the files of the
    machine. Raises RuntimeError with the machine's console when there is no answer.
    """
    initramfs, console, disk = (folder / name for name in ("initramfs", "console.log", "answer.raw"))
    with initramfs.open("wb") as archive:
        pack(archive, image, ".")
        pack(archive, kernel / "lib/modules", "usr/lib/modules")  # the image's /lib is a link
        entry(archive, "init", stat.S_IFREG | 0o755, GUEST.read_bytes())
        entry(archive, "question.json", stat.S_IFREG | 0o644, json.dumps(question).encode())
        entry(archive, "TRAILER!!!", 0, b"")
    for name in ("answer.raw", "sata.raw", "nvme.raw"):
        (folder / name).write_bytes(bytes(ANSWER_BYTES))
    [linux] = (kernel / "boot").glob("vmlinuz-*")
    try:
        subprocess.run(command(linux, folder), timeout=PATIENCE_S, check=True)
        return dict(json.loads(disk.read_bytes().rstrip(b"\0")))
    except (subprocess.SubprocessError, ValueError) as error:
        raise RuntimeError(f"{error}\n{console.read_text(errors='replace')[-4000:]}") from error


def command(linux: Path, folder: Path) -> list[str]:
    """QEMU's command: two processors, the disks and network cards that virtual machines have, a serial console."""
    return [
        "qemu-system-x86_64",
        # The most capable processor has random numbers of its own, and Python as first process waits for none.
        *("-accel", "tcg", "-cpu", "max", "-machine", "q35", "-smp", "2", "-m", str(MEMORY_MIB)),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-serial", f"file:{folder / 'console.log'}"),
        *("-kernel", str(linux), "-initrd", str(folder / "initramfs")),
        *("-append", "console=ttyS0 panic=-1 rdinit=/init"),
        *("-drive", f"file={folder / 'answer.raw'},format=raw,if=virtio"),
        *("-drive", f"file={folder / 'sata.raw'},format=raw,if=none,id=sata", "-device", "ide-hd,drive=sata"),
        *("-drive", f"file={folder / 'nvme.raw'},format=raw,if=none,id=nvme"),
        *("-device", "nvme,drive=nvme,serial=1"),
        *(part for card in ("virtio-net-pci", "e1000", "e1000e", "vmxnet3") for part in ("-device", card)),
    ]


def pack(archive: BinaryIO, folder: Path, name: str) -> None:
    """Write ``folder`` and all below it to a cpio archive, as ``name`` in a folder that is there."""
    if name != ".":
        entry(archive, name, stat.S_IFDIR | 0o755, b"")
    for path in sorted(files(folder)):
        mode, content = path.lstat().st_mode, b""
        if stat.S_ISLNK(mode):
            content = os.readlink(path).encode()
        elif stat.S_ISREG(mode):
            content = path.read_bytes()
        entry(archive, str(Path(name) / path.relative_to(folder)), mode, content)


def files(folder: Path) -> Iterator[Path]:
    """Everything below ``folder``; symbolic links are not followed."""
    for item in os.scandir(folder):
        yield Path(item.path)
        if item.is_dir(follow_symlinks=False):
            yield from files(Path(item.path))


def entry(archive: BinaryIO, name: str, mode: int, content: bytes) -> None:
    """One entry of cpio's format newc: the kernel's Documentation/driver-api/early-userspace/buffer-format.rst."""
    raw = name.encode() + b"\0"
    # inode, mode, owner, group, links, time, size, device twice as two numbers, length of the name, checksum
    numbers = (0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(raw), 0)
    head = b"070701" + b"".join(b"%08x" % number for number in numbers) + raw
    archive.write(head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4))
