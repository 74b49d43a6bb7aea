# SPDX-License-Identifier: Apache-2.0
locals {
  hosts = [for name in sort(keys(var.hosts)) : {
    name = name
    role = var.hosts[name].role
    ssh  = var.hosts[name].ssh
    nics = [for link in sort(keys(var.hosts[name].nics)) : {
      link = link
      mac  = var.hosts[name].nics[link].mac == null ? null : lower(var.hosts[name].nics[link].mac)
      pci  = var.hosts[name].nics[link].pci
      vlan = var.hosts[name].nics[link].vlan
    }]
    placement = var.hosts[name].placement
  }]

  paths = { for name, link in var.links : name => { round_trip_us = link.round_trip_us } if link.round_trip_us != null }

  declared_ends = sort(flatten([for name, link in var.links : ["${name} on ${link.a}", "${name} on ${link.b}"]]))
  existing_ends = sort(flatten([for name, host in var.hosts : [for link in keys(host.nics) : "${link} on ${name}"]]))

  # Keys of the cards: a card with several links has a VLAN for each.
  macs = flatten([for host in local.hosts : [
    for nic in host.nics : "${nic.mac} ${coalesce(nic.vlan, 0)}" if nic.mac != null
  ]])
  doors = [for host in local.hosts : "${host.ssh.address} ${host.ssh.port}"]
}
