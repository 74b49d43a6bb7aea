# SPDX-License-Identifier: Apache-2.0
"""The packet filter that first_boot gives to a machine, loaded into a network namespace and tried from another."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from needs import refuse
from terraform_toolbox import Terraform
from terraform_toolbox import terraform as terraform

pytestmark = [pytest.mark.alone, pytest.mark.root, pytest.mark.terraform]

# A machine with one card to the world and one to a link, and a neighbour on both who claims any address.
STAGE = """
set -e
mount -t tmpfs none /run
ip netns add world
ip link add public type veth peer name wpublic netns world
ip link add data type veth peer name wdata netns world
ip address add 203.0.113.1/24 dev public
ip address add 10.0.1.2/24 dev data
ip link set lo up; ip link set public up; ip link set data up
ip route add default via 203.0.113.2
ip address add 2001:db8:2::1/64 dev public nodad
ip route add default via 2001:db8:2::2
ip -n world address add 203.0.113.2/24 dev wpublic
ip -n world address add 192.0.2.9/32 dev wpublic
ip -n world address add 10.0.77.1/32 dev wpublic
ip -n world address add 10.0.1.1/24 dev wdata
ip -n world address add 2001:db8:2::2/64 dev wpublic nodad
ip -n world address add 2001:db8::9/128 dev wpublic nodad
ip -n world link set lo up; ip -n world link set wpublic up; ip -n world link set wdata up
nft -f "$1/nftables.conf"
nft -f "$1/nftables-ip6.conf"
"$2" -c "$3" serve 22 5001 &
"$2" -c "$3" ready 22 5001
ip netns exec world "$2" -c "$3" try 192.0.2.9 203.0.113.1 22
ip netns exec world "$2" -c "$3" try 203.0.113.2 203.0.113.1 22
ip netns exec world "$2" -c "$3" try 192.0.2.9 203.0.113.1 5001
ip netns exec world "$2" -c "$3" try 10.0.1.1 10.0.1.2 5001
ip netns exec world "$2" -c "$3" try 10.0.77.1 203.0.113.1 5001
ip -n world route delete 10.0.1.0/24 dev wdata
ip -n world route add 10.0.1.2/32 via 203.0.113.1 dev wpublic
ip netns exec world "$2" -c "$3" try 10.0.77.1 10.0.1.2 5001
ip netns exec world "$2" -c "$3" try 2001:db8::9 2001:db8:2::1 22
ip netns exec world "$2" -c "$3" try 2001:db8:2::2 2001:db8:2::1 22
ip netns exec world "$2" -c "$3" try 2001:db8::9 2001:db8:2::1 5001
kill %1
"""
TALK = """
import selectors, socket, sys
what, *words = sys.argv[1:]
if what == "serve":
    doors = selectors.DefaultSelector()
    for port in words:
        door = socket.create_server(("::", int(port)), family=socket.AF_INET6, dualstack_ipv6=True)
        doors.register(door, selectors.EVENT_READ)
    while True:
        for key, _ in doors.select():
            key.fileobj.accept()[0].close()
elif what == "ready":
    for port in words:
        while socket.socket().connect_ex(("127.0.0.1", int(port))):
            pass
else:
    try:
        socket.create_connection((words[1], int(words[2])), timeout=2, source_address=(words[0], 0)).close()
        print(*words, "open")
    except TimeoutError:
        print(*words, "closed")
"""


@pytest.fixture(scope="module")
def rulesets(terraform: Terraform, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filter")
    module = "terraform/modules/first_boot"
    given = {
        "TF_VAR_ssh_public_keys": '["ssh-ed25519 AAAA"]',
        "TF_VAR_ssh_prefixes": '["192.0.2.0/24", "2001:db8::/48"]',
        "TF_VAR_data_plane_prefixes": '["10.0.0.0/16"]',
    }
    terraform.run(module, "apply", "-auto-approve", f"-state={folder / 'state'}", **given)
    said = json.loads(terraform.run(module, "output", "-json", f"-state={folder / 'state'}").stdout)
    for path, content in said["filter"]["value"].items():
        (folder / Path(path).name).write_text(content)
    return folder


def test_only_ssh_from_the_stated_prefix_and_the_links_own_packets_come_in(rulesets: Path) -> None:
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    missing = [name for name in ("ip", "nft", "unshare") if not shutil.which(name, path=path)]
    if missing or os.geteuid() != 0:
        refuse("nft", f"needs root, and {', '.join(missing) or 'nothing else'}")
    if not Path("/proc/net/if_inet6").exists():
        pytest.skip("needs IPv6 in this machine's kernel")
    done = subprocess.run(
        ["unshare", "--net", "--mount", "bash", "-c", STAGE, "stage", str(rulesets), sys.executable, TALK],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "192.0.2.9 203.0.113.1 22 open",
        "203.0.113.2 203.0.113.1 22 closed",
        "192.0.2.9 203.0.113.1 5001 closed",
        "10.0.1.1 10.0.1.2 5001 open",
        "10.0.77.1 203.0.113.1 5001 closed",
        "10.0.77.1 10.0.1.2 5001 closed",
        "2001:db8::9 2001:db8:2::1 22 open",
        "2001:db8:2::2 2001:db8:2::1 22 closed",
        "2001:db8::9 2001:db8:2::1 5001 closed",
    ]
