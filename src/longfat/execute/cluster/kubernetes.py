# SPDX-License-Identifier: Apache-2.0
"""Workers as pods of a Kubernetes Job (batch/v1), with the session's key in a Secret.

Owns the text of both, and their creation and deletion by kubectl(1).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from longfat.execute.cluster.places import Kubernetes
from longfat.system.errors import RigError

PEM = "/session/session.pem"
PYTHON = "/usr/bin/python3"  # of the container image
GRACE_S = 10
_LABELS = {"app.kubernetes.io/name": "longfat"}


@contextmanager
def start_pods(place: Kubernetes, listed: Mapping[str, Any]) -> Iterator[None]:
    """Create the objects of a List, and delete them after the block. Raises RigError with kubectl's message."""
    names = [f"{one['kind'].lower()}/{one['metadata']['name']}" for one in listed["items"]]
    delete = ("delete", *names, "--ignore-not-found", "--wait=false")
    try:
        _kubectl(place, "create", "--filename=-", content=json.dumps(listed))
        yield
    finally:
        _kubectl(place, *delete)


def objects(
    place: Kubernetes, folder: str, count: int, memory_bytes: int, words: Sequence[str], pem: str
) -> dict[str, Any]:
    """Return a Secret and a Job of ``count`` pods of one CPU each as a List, which kubectl(1) reads as JSON.

    A pod that ends is replaced. ``folder`` is the name of the results folder.
    """
    readable = re.sub(r"[^a-z0-9]+", "-", folder.lower()).strip("-")[:30]
    name = f"longfat-{readable}-{hashlib.sha256(pem.encode()).hexdigest()[:8]}"
    metadata = {"name": name, "labels": _LABELS}
    needs = {"cpu": "1", "memory": f"{math.ceil(memory_bytes / (1 << 20))}Mi"}
    container = {
        "name": "worker",
        "image": place.image,
        "command": [PYTHON, "-P", *words],
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        # Requests equal to limits, in whole CPUs: a node with the static CPU policy gives the pod its own CPUs.
        "resources": {"requests": needs, "limits": needs},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [
            {"name": "session", "mountPath": PEM.rpartition("/")[0], "readOnly": True},
            {"name": "scratch", "mountPath": "/tmp"},
        ],
    }
    user = 1000  # of nobody's: the container needs no name, and a namespace may refuse root
    pod = {
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": user,
            "runAsGroup": user,
            "fsGroup": user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "restartPolicy": "OnFailure",
        "terminationGracePeriodSeconds": GRACE_S,
        "automountServiceAccountToken": False,
        "containers": [container],
        "volumes": [{"name": "session", "secret": {"secretName": name}}, {"name": "scratch", "emptyDir": {}}],
    }
    job = {
        "parallelism": count,
        "completions": count,
        "backoffLimit": 6 * count,
        "ttlSecondsAfterFinished": 0,
        "template": {"metadata": {"labels": _LABELS}, "spec": pod},
    }
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"session.pem": pem}}
    job_object = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job}
    return {"apiVersion": "v1", "kind": "List", "items": [secret, job_object]}


def _kubectl(place: Kubernetes, *words: str, content: str = "") -> None:
    if shutil.which("kubectl") is None:
        raise RigError("kubectl is missing", where="--on", hint="install it, and choose a context")
    namespace = ["--namespace", place.namespace] if place.namespace else []
    done = subprocess.run(["kubectl", *namespace, *words], input=content, capture_output=True, text=True)
    if done.returncode:
        raise RigError(f"kubectl failed: {(done.stderr or done.stdout).strip()}", where="--on")
