# SPDX-License-Identifier: Apache-2.0
"""Netlink dumps at fixed intervals, written by the kernel to a file (kernels/: netlink: sample a dump).

Kernels without that patch have no such device: a program takes the samples there (longfat.guest.probes).
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from longfat.guest import netlink
from longfat.guest.sysctls import GuestError

DEVICE = Path("/dev/netlink_sampler")
NETLINK_SAMPLE = 0x40304E60  # _IOW('N', 0x60, struct netlink_sample)
SAMPLE = struct.Struct("=QQQQIiii")  # struct netlink_sample: times in ns, request, its length, socket, file, reserved
HEADER = struct.Struct("=QQ")  # ns of CLOCK_MONOTONIC, bytes that follow


class Sampler(AbstractContextManager["Sampler"]):
    """Repeated dump on ``channel`` from ``first_ns`` to before ``until_ns`` every ``interval_ns`` into ``path``.

    Raises OSError if the kernel refuses.
    """

    def __init__(
        self, channel: socket.socket, request: bytes, path: Path, first_ns: int, interval_ns: int, until_ns: int
    ) -> None:
        self._path = path
        self._expected = len(range(first_ns, until_ns, interval_ns))
        self._device = os.open(DEVICE, os.O_RDWR)
        kept = ctypes.create_string_buffer(request, len(request))
        with path.open("wb") as file:
            what = SAMPLE.pack(
                *(first_ns, interval_ns, until_ns, ctypes.addressof(kept), len(request)),
                *(channel.fileno(), file.fileno(), 0),
            )
            fcntl.ioctl(self._device, NETLINK_SAMPLE, what)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._path.unlink(missing_ok=True)

    def stop(self) -> None:
        """End the samples."""
        if self._device >= 0:
            os.close(self._device)
            self._device = -1

    def samples(self) -> Iterator[tuple[int, list[bytes]]]:
        """Stop, and yield time (ns) and message bodies of each sample. Raises GuestError on a lost sample."""
        self.stop()
        taken = 0
        with self._path.open("rb") as file:
            while header := file.read(HEADER.size):
                t_ns, length = HEADER.unpack(header)
                yield t_ns, list(netlink.bodies(file.read(length)))
                taken += 1
        if taken != self._expected:
            raise GuestError(f"the kernel took {taken} of {self._expected} samples")
