# SPDX-License-Identifier: Apache-2.0
mock_provider "latitudesh" {
  mock_resource "latitudesh_tag" {
    defaults = { id = "tag_1", slug = "tag" }
  }
  mock_resource "latitudesh_firewall" {
    defaults = { id = "fw_1" }
  }
}

override_resource {
  target = latitudesh_server.this["sender"]
  values = {
    id           = "sv_1"
    primary_ipv4 = "192.0.2.11"
    region       = "Ashburn"
    interfaces = [
      { name = "eno1", description = "", mac_address = "52:54:00:00:00:01" },
      { name = "eno2", description = "", mac_address = "52:54:00:00:00:02" },
    ]
  }
}

override_resource {
  target = latitudesh_server.this["router"]
  values = {
    id           = "sv_2"
    primary_ipv4 = "192.0.2.12"
    region       = "Ashburn"
    interfaces = [
      { name = "ens7", description = "", mac_address = "52:54:00:00:00:03" },
      { name = "eno2", description = "", mac_address = "52:54:00:00:00:05" },
    ]
  }
}

override_resource {
  target = latitudesh_server.this["receiver"]
  values = {
    id           = "sv_3"
    primary_ipv4 = "192.0.2.13"
    region       = "Ashburn"
    interfaces   = [{ name = "eno2", description = "", mac_address = "52:54:00:00:00:04" }]
  }
}

override_resource {
  target = latitudesh_vlan_assignment.link["left/sender"]
  values = { vid = 2001 }
}

override_resource {
  target = latitudesh_vlan_assignment.link["left/router"]
  values = { vid = 2001 }
}

override_resource {
  target = latitudesh_vlan_assignment.link["right/router"]
  values = { vid = 2002 }
}

override_resource {
  target = latitudesh_vlan_assignment.link["right/receiver"]
  values = { vid = 2002 }
}

override_resource {
  target = latitudesh_vlan_assignment.link["direct/sender"]
  values = { vid = 2003 }
}

override_resource {
  target = latitudesh_vlan_assignment.link["direct/receiver"]
  values = { vid = 2003 }
}

variables {
  tags           = { study = "smoke", owner = "lab@example.org", expires = "2099-01-01T00:00:00Z" }
  project        = "proj_1"
  site           = "ASH"
  plan           = "m4-metal-medium"
  data_interface = "eno2"
  ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAbc somebody"
  ssh_prefixes   = ["192.0.2.0/24"]
}

run "defaults" {
  assert {
    condition = [for nic in output.inventory.hosts[2].nics : "${nic.link} ${nic.mac} ${nic.vlan}"] == [
      "direct 52:54:00:00:00:02 2003", "left 52:54:00:00:00:02 2001"
    ]
    error_message = "the sender's links are not two VLANs on the default card"
  }
}

run "another_system_does_not_erase_a_machine" {
  command = plan
  assert {
    condition     = alltrue([for server in latitudesh_server.this : !server.allow_reinstall])
    error_message = "the provider would install a machine again"
  }
}

run "contract" {
  variables {
    hosts = {
      receiver = { role = "receiver" }
      router   = { role = "router", data_interface = "ens7" }
      sender   = { role = "sender", plan = "m4-metal-large" }
    }
  }
  assert {
    condition = [for nic in output.inventory.hosts[1].nics : "${nic.link} ${nic.mac} ${nic.vlan}"] == [
      "left 52:54:00:00:00:03 2001", "right 52:54:00:00:00:03 2002"
    ]
    error_message = "the router's links are not two VLANs on the card that was named"
  }
  assert {
    condition     = output.inventory.hosts[2].nics[0].mac == "52:54:00:00:00:02"
    error_message = "the sender's card is not the one that was named"
  }
  assert {
    condition = [for host in output.inventory.hosts : host.placement.machine_type] == [
      "m4-metal-medium", "m4-metal-medium", "m4-metal-large"
    ]
    error_message = "a machine is not of the plan that was stated"
  }
}

run "by_the_hour" {
  command = plan
  assert {
    condition     = alltrue([for server in latitudesh_server.this : server.billing == "hourly"])
    error_message = "a machine is rented for longer than an hour"
  }
}

run "tags" {
  assert {
    condition = sort([for tag in latitudesh_tag.this : tag.description]) == tolist([
      "expires=2099-01-01T00:00:00Z", "owner=lab@example.org", "study=smoke"
    ])
    error_message = "the tags do not say whose this is and until when"
  }
  assert {
    condition = alltrue(concat(
      [for each in latitudesh_server.this : length(each.tags) == 3],
      [for each in latitudesh_virtual_network.link : length(each.tags) == 3],
      [length(latitudesh_ssh_key.this.tags) == 3],
    ))
    error_message = "something rented does not carry the tags"
  }
}

run "doors" {
  command = plan
  assert {
    condition = [for rule in latitudesh_firewall.this.rules : "${rule.from} ${rule.port} ${rule.protocol}"] == [
      "192.0.2.0/24 22 tcp"
    ]
    error_message = "something else than SSH from the stated prefix is let in"
  }
  assert {
    condition     = strcontains(base64decode(latitudesh_user_data.this.content), "policy drop;")
    error_message = "a machine has no packet filter of its own"
  }
}

run "card_that_is_not_there" {
  command = plan
  variables {
    data_interface = "eno9"
  }
  expect_failures = [
    latitudesh_server.this["sender"], latitudesh_server.this["receiver"], latitudesh_server.this["router"]
  ]
}

run "whole_world" {
  command = plan
  variables {
    ssh_prefixes = ["0.0.0.0/0"]
  }
  expect_failures = [var.ssh_prefixes]
}

run "expired" {
  command = plan
  variables {
    tags = { study = "smoke", owner = "lab", expires = "2001-01-01T00:00:00Z" }
  }
  expect_failures = [check.expiry]
}

run "site_in_small_letters" {
  command = plan
  variables {
    site = "ash"
  }
  expect_failures = [var.site]
}

run "windows" {
  command = plan
  variables {
    operating_system = "windows_2022_std"
  }
  expect_failures = [var.operating_system]
}
