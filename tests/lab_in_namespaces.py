# SPDX-License-Identifier: Apache-2.0
"""A lab without machines: three hosts, each in namespaces of its own with the project's userland, and cables of veth.

The link ``direct`` is a tunnel over a network between its two hosts, made by the real longfat-nics. Owns the hosts'
start and end, and a program ``ssh`` that enters them where the real one would connect. The rest is as on a real host:
the agent comes over that connection, takes the cards, and has to give them back. Must not assert anything.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import longfat_nics
import pytest

from longfat.backends.virtual import open_virtual

PATIENCE_S = 20.0
CARD: dict[str, Any] = {"mac": None, "vlan": None}
ROLES = {"receiver": "receiver", "router": "router", "sender": "sender"}
CABLES = {"left": ("sender", "router"), "right": ("router", "receiver")}
TUNNEL, VNI, ENDS = "direct", 7, {"sender": "192.0.2.1", "receiver": "192.0.2.2"}
LINKS = {TUNNEL: tuple(ENDS), **CABLES}

# Mounts and namespaces end with the first process. Each network namespace has a file, by which cables are laid.
HOSTS = """\
set -eu
root=$1 shared=$2
shift 2
mkdir "$shared/netns"
for host; do
    touch "$shared/netns/$host"
    unshare --net="$shared/netns/$host" true
done
for host; do
    nsenter --net="$shared/netns/$host" unshare --mount --uts sh -euc "$HOST" sh "$root" "$shared" "$host" &
done
wait
"""

# A host: the userland, read-only, with what may be written in memory.
HOST = """\
root=$1 shared=$2 host=$3
hostname "$host"
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /dev "$root/dev"
for folder in run tmp usr/local var/lib; do mount -t tmpfs tmpfs "$root/$folder"; done
mkdir "$root/run/shared" "$root/usr/local/sbin"
mount --rbind "$shared" "$root/run/shared"
ln -s shared/netns "$root/run/netns"
cp "$shared/longfat-nics" "$root/usr/local/sbin/"
ip link set lo up
echo $$ >"$shared/$host.part"
cd "$root"
mkdir run/machine
pivot_root . run/machine
exec chroot . sh -euc "$READY" sh "$host"
"""

READY = """\
umount -l /run/machine
mv "/run/shared/$1.part" "/run/shared/$1.pid"
exec sleep infinity
"""

# The part of longfat-nics that runs rely on. A cable of veth goes with the namespace that had one of its ends: it is
# laid again, by whichever of the two hosts comes first.
NICS = """\
#!/bin/sh
set -eu
if [ "$1" = find ]; then cat /run/shared/$(hostname).json; exit; fi
exec 9>/run/shared/lock
flock 9
while read -r cable mac one far_mac other; do
    ip -n "$one" link show "$cable" >/dev/null 2>&1 ||
        ip -n "$one" link add "$cable" address "$mac" type veth peer name "$cable" address "$far_mac" netns "$other"
    ip -n "$one" link set "$cable" up
    ip -n "$other" link set "$cable" up
done </run/shared/cables
if ! ip -n sender link show lan >/dev/null 2>&1; then
    ip -n sender link add lan type veth peer name lan netns receiver
    for host in sender receiver; do
        ip -n $host address add $(cat /run/shared/$host.address)/24 dev lan
        ip -n $host link set lan up
    done
fi
if [ "$(hostname)" != router ]; then python3 /run/shared/tunnels.py "$1" >/dev/null; fi
"""

TUNNELS = """\
import pathlib, socket, sys
import longfat_nics
longfat_nics.STATES = pathlib.Path("/run/shared/nics") / socket.gethostname()
sys.exit(longfat_nics.main(sys.argv[1:]))
"""

SSH = """\
#!/bin/sh
# The user's name is followed by the address, which is the host's name here, and the command.
set -eu
while [ "$1" != -l ]; do shift; done
host=$3
shift 3
ulimit -S -f unlimited  # a limit of the commanding process does not reach a real host
case "$*" in python3*) set -- "exec $*" ;; esac # so that the process noted is the agent
echo $host $$ >>@FOLDER@/connections
exec nsenter --target="$(cat @FOLDER@/$host.pid)" --mount --net --uts -- sh -c "$*"
"""


@dataclass(frozen=True)
class Lab:
    """The lab's folder, and where its program ``ssh`` is."""

    folder: Path
    programs: Path
    shared: Path

    def agent(self, host: str) -> int:
        """Process number of the agent of the last connection to a host."""
        lines = (self.shared / "connections").read_text().splitlines()
        return int([line.split()[1] for line in lines if line.split()[0] == host][-1])

    def say(self, host: str, command: str) -> str:
        """What a command prints on a host."""
        words = [str(self.programs / "ssh"), "-l", "root", host, command]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@contextmanager
def lab_in_namespaces() -> Iterator[Lab]:
    """Start three hosts, as root, until the block ends. Skips the test where even root can make no namespaces."""
    if subprocess.run(["unshare", "--mount", "--net", "--uts", "true"], capture_output=True).returncode:
        pytest.skip("no namespaces can be made here, as in a container without privileges")
    root = open_virtual().root
    with tempfile.TemporaryDirectory(prefix="lab-") as name:
        shared = Path(name)
        lab = Lab(shared / "lab", shared / "programs", shared)
        _write_files(lab)
        command = ["unshare", "--mount", "sh", "-c", HOSTS, "sh"]
        process = subprocess.Popen(
            [*command, str(root), name, *ROLES], env=os.environ | {"HOST": HOST, "READY": READY}, process_group=0
        )
        try:
            _await_hosts(shared, process)
            for host in ROLES:
                lab.say(host, "/usr/local/sbin/longfat-nics apply")
            yield lab
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _await_hosts(shared: Path, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not all((shared / f"{host}.pid").exists() for host in ROLES):
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError("the hosts of the lab did not start")
        time.sleep(0.05)


def _write_files(lab: Lab) -> None:
    for folder in (lab.folder, lab.programs):
        folder.mkdir()
    for path, text in ((lab.shared / "longfat-nics", NICS), (lab.programs / "ssh", SSH)):
        path.write_text(text.replace("@FOLDER@", shlex.quote(str(lab.shared))))
        path.chmod(0o755)
    ends = (f"02:00:00:01:0{number}:0" for number in range(len(CABLES)))
    laid = zip(ends, CABLES.items(), strict=True)
    lines = (f"{cable} {mac}1 {one} {mac}2 {other}\n" for mac, (cable, (one, other)) in laid)
    (lab.shared / "cables").write_text("".join(lines))
    links = {host: [link for link, ends in LINKS.items() if host in ends] for host in ROLES}
    for host, own in links.items():
        cards = {link: f"vxlan{VNI}" if link == TUNNEL else link for link in own}
        (lab.shared / f"{host}.json").write_text(json.dumps(cards))
    tunnels = _write_tunnels(lab)
    hosts = [
        {
            "name": host,
            "role": role,
            "ssh": {"address": host, "port": 22, "user": "root", "host_key": None},
            "nics": [
                {"link": link, **(tunnels[host] if link == TUNNEL else CARD | {"pci": f"0000:00:0{place}.0"})}
                for place, link in enumerate(links[host], start=1)
            ],
            "placement": {"provider": "namespaces", "location": None, "machine_type": None, "id": None},
        }
        for host, role in ROLES.items()
    ]
    tags = {"study": "test", "owner": "test", "expires": None}
    inventory = {"format": 1, "environment": "existing", "tags": tags, "hosts": hosts, "paths": {}}
    (lab.folder / "inventory.json").write_text(json.dumps(inventory))


def _write_tunnels(lab: Lab) -> dict[str, dict[str, Any]]:
    """Write the state of each end of the tunnel for longfat-nics, and return the ends by host."""
    (lab.shared / "tunnels.py").write_text(TUNNELS)
    (lab.shared / "longfat_nics.py").write_bytes(Path(longfat_nics.__file__).read_bytes())
    found = {}
    for number, (host, address) in enumerate(ENDS.items()):
        (remote,) = set(ENDS.values()) - {address}
        end = {"mac": f"02:00:00:00:00:0{number}", "tunnel": {"vni": VNI, "local": address, "remote": remote}}
        (lab.shared / "nics" / host).mkdir(parents=True)
        (lab.shared / "nics" / host / "1.json").write_text(json.dumps({TUNNEL: end | {"up": True}}))
        (lab.shared / f"{host}.address").write_text(address)
        found[host] = end | {"pci": None, "vlan": None}
    return found


def environment(lab: Lab) -> dict[str, str]:
    """The environment of a command that is to use the lab."""
    return os.environ | {"PATH": f"{lab.programs}:{os.environ['PATH']}", "LONGFAT_LABS": str(lab.folder.parent)}
