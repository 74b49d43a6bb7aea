# SPDX-License-Identifier: Apache-2.0
"""Docker for tests: the daemon that answers here, else one of their own, which is gone without a trace afterwards.

Owns that daemon's start and end, and what happens where there is no Docker. Must not assert anything.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from needs import comes_true, end_session, refuse, require_packages

PATIENCE_S = 60.0
LOG_TAIL_CHARS = 2000
# The daemon sees the machine's files but a /run and an /etc/docker of its own, and what it mounts is seen by nobody
# else; all of that ends with it.
NAMESPACE = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
IN_NAMESPACE = 'mount -t tmpfs none /run && mount -t tmpfs none /etc/docker && exec dockerd "$@"'


@dataclass(frozen=True)
class Docker:
    """The command ``docker`` for one daemon."""

    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def __call__(self, *arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run it with these arguments. Raises RuntimeError with what it said unless it ends well."""
        done = subprocess.run(["docker", *arguments], env=self.environment, capture_output=True, text=True)
        if check and done.returncode:
            raise RuntimeError(f"{done.args} ended with status {done.returncode}\n{done.stdout}{done.stderr}")
        return done


@contextmanager
def docker() -> Iterator[Docker]:
    """Docker with a daemon, perhaps one that ends with the block. Skips, or fails, the test where there can be none."""
    if shutil.which("docker") and answers(Docker()):
        yield Docker()
        return
    require_packages("docker", "packages-docker.txt")
    if os.geteuid():
        refuse("docker", "no Docker daemon answers, and only root can start one")
    # Not below pytest's folders: a socket's path has at most 107 characters.
    with tempfile.TemporaryDirectory(prefix="dockerd-") as folder, _daemon(Path(folder)) as own:
        yield own


def answers(command: Docker) -> bool:
    """Whether the daemon of ``command`` answers."""
    return command("version", "--format", "{{.Server.Version}}", check=False).returncode == 0


@contextmanager
def _daemon(folder: Path) -> Iterator[Docker]:
    """A daemon with everything in ``folder`` that has neither a bridge nor rules in the machine's firewall."""
    (folder / "daemon.json").write_text("{}")
    parent = f"/longfat-{folder.name}"
    options = [f"--data-root={folder}/data", f"--exec-root={folder}/exec", f"--pidfile={folder}/pid"]
    options += [f"--host=unix://{folder}/socket", f"--config-file={folder}/daemon.json", f"--cgroup-parent={parent}"]
    options += ["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"]
    command = Docker({**os.environ, "DOCKER_HOST": f"unix://{folder}/socket", "DOCKER_CONFIG": f"{folder}/client"})
    configured = Path("/etc/docker")
    made = not configured.exists()
    configured.mkdir(exist_ok=True)
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*NAMESPACE, IN_NAMESPACE, "dockerd", *options],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        begun = comes_true(lambda: process.poll() is not None or answers(command), PATIENCE_S)
        if not begun or process.poll() is not None:
            refuse("docker", f"dockerd does not start here: {log.read_text(errors='replace')[-LOG_TAIL_CHARS:]}")
        yield command
    finally:
        end_session(process)  # which ends its containers and its containerd first
        if made:
            configured.rmdir()
        for group in Path("/sys/fs/cgroup").glob(f"**{parent}"):
            with suppress(OSError):
                group.rmdir()
