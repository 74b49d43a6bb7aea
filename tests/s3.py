# SPDX-License-Identifier: Apache-2.0
"""S3 for tests: moto's server, a process on the loopback interface with a bucket that ends with it.

Must not assert anything.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 60.0
BUCKET = "longfat"


@dataclass(frozen=True)
class Server:
    """A server that runs, and the ``variables`` by which clients find it."""

    variables: dict[str, str]
    process: int

    def cpu_s(self) -> float:
        """The CPU time that it has used (proc(5), stat)."""
        words = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def s3() -> Iterator[Server]:
    """A server with an empty bucket. Raises RuntimeError where it ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    line = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    secrets = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "testing")
    server = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **secrets})
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not _made(address):
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("moto's server does not start")
            time.sleep(0.2)
        yield Server({"AWS_ENDPOINT_URL": address, "AWS_DEFAULT_REGION": "us-east-1", **secrets}, server.pid)
    finally:
        server.terminate()
        server.wait()


def _made(address: str) -> bool:
    """Make the bucket, which needs no signature there; whether that went well."""
    with suppress(OSError):
        request = urllib.request.Request(f"{address}/{BUCKET}", method="PUT")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return bool(answer.status == 200)
    return False
