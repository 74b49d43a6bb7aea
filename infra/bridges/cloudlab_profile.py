# SPDX-License-Identifier: Apache-2.0
"""A sender, a router and a receiver with cables between them, for Longfat's studies on real hosts.

Instructions: when the experiment is ready, save its manifest, and give it to infra/bridges/cloudlab.py.
"""

import geni.portal as portal

context = portal.Context()
context.defineParameter("image", "Disk image with Debian 12", portal.ParameterType.STRING, "")
context.defineParameter("hardware", "Type of the machines, empty for any", portal.ParameterType.STRING, "")
parameters = context.bindParameters()
request = context.makeRequestRSpec()

nodes = {}
for name in ("sender", "router", "receiver"):
    nodes[name] = request.RawPC(name)
    nodes[name].disk_image = parameters.image
    if parameters.hardware:
        nodes[name].hardware_type = parameters.hardware

for name, ends in (
    ("left", ("sender", "router")),
    ("right", ("router", "receiver")),
    ("direct", ("sender", "receiver")),
):
    link = request.Link(name)
    for end in ends:
        link.addInterface(nodes[end].addInterface(name))

context.printRequestRSpec(request)
