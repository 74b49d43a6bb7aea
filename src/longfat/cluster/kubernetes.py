# SPDX-License-Identifier: Apache-2.0
"""Kubernetes: the tasks are an Indexed Job, applied with the user's kubectl(1).

The volume with the results folder has to be mounted here too. Must not know runs.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from longfat.cluster.manifest import Pods, job_of
from longfat.cluster.protocol import Standing, Work
from longfat.errors import RigError


@dataclass(frozen=True)
class Kubernetes:
    """The cluster of kubectl's present context."""

    pods: Pods

    name = "kubernetes"
    tasks = None

    def text(self, work: Work) -> str:
        """The manifest of the Job."""
        return json.dumps(job_of(work, self.pods), indent=1) + "\n"

    def submit(self, work: Work) -> None:
        """Apply the Job, in place of one of that name that has ended."""
        (work.folder / "ended").mkdir(parents=True, exist_ok=True)
        manifest = work.folder / "job.json"
        manifest.write_text(self.text(work), encoding="utf-8")
        self.cancel(work.name)
        self._call("create", "--filename", str(manifest))

    def poll(self, name: str) -> Standing:
        """Count the pods that the Job still has to have."""
        found = self._call("get", "job", name, "--ignore-not-found", "--output=json")
        if not found.strip():
            return Standing(0, 0)
        job = json.loads(found)
        status = job.get("status", {})
        conditions = {one["type"]: one for one in status.get("conditions", ()) if one["status"] == "True"}
        if "Complete" in conditions or "Failed" in conditions:
            return Standing(0, 0)
        running = int(status.get("ready", 0))
        left = int(job["spec"]["completions"]) - int(status.get("succeeded", 0))
        return Standing(max(left - running, 0), running, "pods that are not ready")

    def cancel(self, name: str) -> None:
        """Delete the Job and its pods."""
        self._call("delete", "job", name, "--ignore-not-found", "--cascade=foreground", "--wait=true")

    def nodes(self) -> frozenset[str]:
        """The nodes, where the user may list them."""
        try:
            return frozenset(self._call("get", "nodes", "--output=jsonpath={.items[*].metadata.name}").split())
        except RigError:
            return frozenset()

    def parts(self, name: str) -> Sequence[Path]:
        """None: the pods share the volume."""
        return ()

    def _call(self, *words: str) -> str:
        """What kubectl prints. Raises RigError with what it said unless it ends well."""
        if shutil.which("kubectl") is None:
            raise RigError("there is no kubectl here", hint="--print prints the manifest, to be applied elsewhere")
        namespace = ["--namespace", self.pods.namespace] if self.pods.namespace else []
        done = subprocess.run(["kubectl", *namespace, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise RigError(f"kubectl refuses: {(done.stderr or done.stdout).strip()}")
        return done.stdout
