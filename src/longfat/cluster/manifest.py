# SPDX-License-Identifier: Apache-2.0
"""The Job of Kubernetes (batch/v1) that executes tasks: completion mode Indexed, one pod a task.

Owns its text, a pure function of the work. Must not talk to a cluster.
"""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from typing import Any

from longfat.cluster.protocol import Work
from longfat.errors import StudyError

FOLDER = "/results"  # where pods see the results folder
GRACE_S = 60  # between SIGTERM and SIGKILL, at an eviction too
KEPT_S = 86_400  # a finished Job is kept so long, for `kubectl logs`
ENTRY = "/usr/bin/python3 -P -m longfat"  # of the container image
KEYS = ("image", "claim", "path", "namespace")

# As in an array of Slurm: a pod succeeds when it has said how its task ended. A pod that was killed has not, and
# Kubernetes starts another one in its place.
_SCRIPT = """\
begun=$(date +%s)
{command} >{folder}/task-$JOB_COMPLETION_INDEX.log 2>&1 &
program=$!
trap 'kill -TERM $program' TERM INT
wait $program
status=$?
while kill -0 $program 2>/dev/null; do
    wait $program
    status=$?
done
[ $status = 130 ] && exit 1
echo "$NODE_NAME $status $(($(date +%s) - begun))" >{folder}/ended/.$JOB_COMPLETION_INDEX
mv {folder}/ended/.$JOB_COMPLETION_INDEX {folder}/ended/$JOB_COMPLETION_INDEX
"""


@dataclass(frozen=True)
class Pods:
    """The ``image`` that pods run, and the volume ``claim`` with the results folder, at ``path`` of the volume."""

    image: str
    claim: str
    path: str = ""
    namespace: str = ""


def read_pods(text: str) -> Pods:
    """Read ``image=IMAGE,claim=CLAIM[,path=FOLDER][,namespace=NAME]``. Raises StudyError on anything else."""
    given = dict(part.partition("=")[::2] for part in text.split(",") if part)
    unknown = [key for key in given if key not in KEYS]
    missing = [key for key in KEYS[:2] if not given.get(key)]
    if unknown or missing:
        problem = f"unknown key {unknown[0]!r}" if unknown else f"{missing[0]} is missing"
        allowed = "kubernetes:image=IMAGE,claim=CLAIM[,path=FOLDER OF THE VOLUME][,namespace=NAME]"
        raise StudyError(f"{problem}; allowed: {allowed}", where="--on")
    return Pods(**given)


def job_of(work: Work, pods: Pods) -> dict[str, Any]:
    """The manifest of the Job, to be written as JSON, which kubectl(1) reads."""
    folder = shlex.quote(f"{FOLDER}/{work.folder.relative_to(work.results)}")
    script = _SCRIPT.format(command=f"{ENTRY} {shlex.join(('task', FOLDER, *work.options))}", folder=folder)
    needs = {"cpu": str(work.cpus), "memory": f"{math.ceil(work.cpus * work.memory_bytes / (1 << 20))}Mi"}
    container = {
        "name": "task",
        "image": pods.image,
        "command": ["/bin/sh", "-c", script],
        "env": [
            {"name": "JOB_COMPLETIONS", "value": str(work.tasks)},
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
        # Requests equal to limits, in whole CPUs: a node with the static CPU policy gives the pod CPUs of its own.
        "resources": {"requests": needs, "limits": needs},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [
            {"name": "results", "mountPath": FOLDER, **({"subPath": pods.path} if pods.path else {})},
            {"name": "scratch", "mountPath": "/tmp"},
        ],
    }
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_S,
        "containers": [container],
        "volumes": [
            {"name": "results", "persistentVolumeClaim": {"claimName": pods.claim}},
            {"name": "scratch", "emptyDir": {}},
        ],
    }
    if work.exclude:
        name = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": sorted(work.exclude)}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [name]}]}
        pod["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": work.name,
            "labels": {"app.kubernetes.io/name": "longfat"},
            **({"namespace": pods.namespace} if pods.namespace else {}),
        },
        "spec": {
            "completionMode": "Indexed",
            "completions": work.tasks,
            "parallelism": work.tasks,
            "backoffLimit": 6 * work.tasks,
            "activeDeadlineSeconds": 7 * 86_400,  # pods may wait for a node for days; each ends itself by --until
            "ttlSecondsAfterFinished": KEPT_S,
            # A pod that is evicted or preempted does not count as one that failed.
            "podFailurePolicy": {
                "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
            },
            "template": {"metadata": {"labels": {"app.kubernetes.io/name": "longfat"}}, "spec": pod},
        },
    }
