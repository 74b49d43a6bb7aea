# SPDX-License-Identifier: Apache-2.0
"""Program of a guest with a shell instead of a run: builds the network of /task/spec.json and starts bash.

``/task/order.json`` names the node. Each node is a shell function, a host name and a namespace of ``ip netns``.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

from longfat.guest import traffic
from longfat.guest.network import Namespaces, Network
from longfat.guest.sysctls import write_sysctl
from longfat.spec.runspec import RunSpec

TASK = Path("/task")
NAMES = Path("/run/netns")  # where ip(8) looks for namespaces
CONSOLE = "/dev/tty0"
PROGRAMS = Path("/run/bin")
# The image has no sysctl(8); this script reads and writes the sysctls of its network namespace.
SYSCTL = """\
#!/bin/bash
for one; do
    [[ $one != -w ]] || continue
    name=${one%%=*}
    path=/proc/sys/${name//.//}
    [[ $one != *=* ]] || printf '%s\\n' "${one#*=}" >"$path" || exit
    value=$(cat "$path") || exit
    echo "$name = $value"
done
"""


def execute() -> None:
    """Build the network, name its nodes, start the shell and wait until it ends."""
    spec = RunSpec.from_json((TASK / "spec.json").read_text())
    order = json.loads((TASK / "order.json").read_text())
    pages = spec.memory_bytes // os.sysconf("SC_PAGE_SIZE") // 2
    write_sysctl("net.ipv4.tcp_mem", f"{pages} {pages} {pages}")
    os.environ.update(PATH=f"{PROGRAMS}:/usr/sbin:/usr/bin:/sbin:/bin", HOME="/tmp", LC_ALL="C", TERM="dumb")
    PROGRAMS.mkdir()
    (PROGRAMS / "sysctl").write_text(SYSCTL)
    (PROGRAMS / "sysctl").chmod(0o755)
    scratch = Path("/tmp/run")
    scratch.mkdir()
    with Network(spec, scratch, Namespaces(wires=True)) as network:
        _name_nodes(network)
        Path("/run/names.bash").write_text("\n".join([*_functions(spec, network), ""]))
        os.environ.update(NODE=order["node"])
        with network.inside(order["node"]), open(CONSOLE, "rb") as keys:
            shell = subprocess.Popen(
                ["bash", "--noprofile", "--norc", str(TASK / "loop.bash")],
                stdin=subprocess.DEVNULL,
                preexec_fn=lambda: _own_console(keys.fileno()),
                cwd="/tmp",
            )
        (TASK / "raw" / "status").write_text(str(shell.wait()))


def _own_console(keys: int) -> None:
    """Make the console the controlling terminal, so that Ctrl-C interrupts the program in the shell."""
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(keys, termios.TIOCSCTTY, 1)


def _name_nodes(network: Network) -> None:
    NAMES.mkdir()
    lines = ["127.0.0.1 localhost"]
    for node in network.nodes:
        place = NAMES / node.name
        place.touch()
        with network.inside(node.name):
            subprocess.run(["mount", "--bind", "/proc/self/ns/net", str(place)], check=True)
        lines.append(f"{network.topology.address(node.name)} {node.name}")
    hosts = Path("/run/hosts")
    hosts.write_text("\n".join([*lines, ""]))
    subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)


def _functions(spec: RunSpec, network: Network) -> list[str]:
    """Return Bash functions that start flows, and for each node a function of its name that executes a command there.

    A node with the name of a command has no function: ``on NODE COMMAND`` works for every node.
    """
    ports, cases = traffic.ports(spec), []
    for flow in spec.flows:
        address, port = network.topology.address(flow.receiver), ports[flow.name]
        server, client = traffic.server_command(flow, port), traffic.client_command(flow, address, port)
        begin = f"_at {flow.receiver} {shlex.join(server)} >/tmp/{flow.name}.server 2>&1 &"
        send = f"_at {flow.sender} {shlex.join(client)} >/tmp/{flow.name}.client 2>&1 &"
        cases.append(f"{flow.name}) {begin} sleep 0.1; {send} ;;")
    names = " ".join(flow.name for flow in spec.flows)
    lines = [f'_at() {{ command nsenter --net={NAMES}/"$1" "${{@:2}}"; }}']
    lines.append(f'start() {{ local one; [ $# -gt 0 ] || set -- {names}; for one; do _start "$one"; done; }}')
    lines.append(f'_start() {{ case "$1" in {" ".join(cases)} *) echo "no flow $1: {names}" >&2; return 1 ;; esac; }}')
    for node in network.nodes:
        function = f'{node.name}() {{ _at {node.name} "$@"; }}'
        lines.append(f"type -t {node.name} >/dev/null || eval {shlex.quote(function)}")
    return lines
