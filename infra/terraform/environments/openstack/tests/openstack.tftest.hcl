# SPDX-License-Identifier: Apache-2.0
mock_provider "openstack" {
  mock_data "openstack_networking_network_v2" {
    defaults = { id = "9a1d0a27-cffa-4de3-92c5-9d3fd3f2e74d" }
  }
  mock_resource "openstack_compute_instance_v2" {
    defaults = {
      id                = "ad091b52-742f-469e-8f3c-fd81cadf0743"
      access_ip_v4      = "192.0.2.77"
      availability_zone = "nova"
      network           = { mac = "" } # of all blocks alike, so that only hosts with one link can have one of their own
    }
  }
  mock_resource "openstack_networking_secgroup_v2" {
    defaults = { id = "2f02d20a-8dca-49b7-b26f-b6ce9fddaf4f" }
  }
}

override_resource {
  target = openstack_networking_port_v2.link["left/sender"]
  values = { id = "port-1", mac_address = "FA:16:3E:00:00:01" }
}

override_resource {
  target = openstack_networking_port_v2.link["left/router"]
  values = { id = "port-2", mac_address = "fa:16:3e:00:00:02" }
}

override_resource {
  target = openstack_networking_port_v2.link["right/router"]
  values = { id = "port-3", mac_address = "fa:16:3e:00:00:03" }
}

override_resource {
  target = openstack_networking_port_v2.link["right/receiver"]
  values = { id = "port-4", mac_address = "fa:16:3e:00:00:04" }
}

override_resource {
  target = openstack_networking_floatingip_v2.this["sender"]
  values = { address = "192.0.2.11" }
}

override_resource {
  target = openstack_networking_floatingip_v2.this["router"]
  values = { address = "192.0.2.12" }
}

override_resource {
  target = openstack_networking_floatingip_v2.this["receiver"]
  values = { address = "192.0.2.13" }
}

override_resource {
  target = openstack_networking_port_v2.link["direct/sender"]
  values = { id = "port-7", mac_address = "fa:16:3e:00:00:07" }
}

override_resource {
  target = openstack_networking_port_v2.link["direct/receiver"]
  values = { id = "port-8", mac_address = "fa:16:3e:00:00:08" }
}

variables {
  tags           = { study = "smoke", owner = "lab", expires = "2099-01-01T00:00:00Z" }
  reservation_id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
  image          = "CC-Debian12"
  ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAbc somebody"
  ssh_prefixes   = ["192.0.2.0/24", "2001:db8::/48"]
}

run "contract" {
  assert {
    condition = [for host in output.inventory.hosts : host.ssh.address] == [
      "192.0.2.13", "192.0.2.12", "192.0.2.11"
    ]
    error_message = "the hosts are not reached by their floating addresses"
  }
  assert {
    condition = [for nic in output.inventory.hosts[1].nics : "${nic.link} ${nic.mac}"] == [
      "left fa:16:3e:00:00:02", "right fa:16:3e:00:00:03"
    ]
    error_message = "the router's cards are not those of its ports"
  }
  assert {
    condition = alltrue([for host in openstack_compute_instance_v2.this :
      one(host.scheduler_hints).additional_properties.reservation == var.reservation_id
    ])
    error_message = "a machine is not asked for under the reservation"
  }
  assert {
    condition     = [for network in openstack_compute_instance_v2.this["router"].network : network.port][1] == "port-2"
    error_message = "the router's second card is not the left link's"
  }
}

run "an_image_by_its_id" {
  command = plan
  plan_options {
    replace = [openstack_compute_instance_v2.this["sender"]]
  }
  variables {
    image = "0f5c1a7e-3d2b-4c1d-9e8f-a0b1c2d3e4f5"
  }
  assert {
    condition     = openstack_compute_instance_v2.this["sender"].image_id == var.image
    error_message = "Nova looks for an image with this name"
  }
}

run "another_prefix_or_image_does_not_erase_a_machine" {
  command = plan
  variables {
    ssh_prefixes = ["198.51.100.0/24"]
    image        = "CC-Debian12-renamed"
  }
  assert {
    condition = alltrue([for host in openstack_compute_instance_v2.this :
      host.image_name == "CC-Debian12" && !strcontains(host.user_data, "198.51.100.0")
    ])
    error_message = "Nova would create or rebuild a machine"
  }
  assert {
    condition     = keys(openstack_networking_secgroup_rule_v2.ssh) == ["198.51.100.0/24"]
    error_message = "the security group does not follow the prefix"
  }
}

run "the_vlan_of_a_link_is_asked_for_as_an_ordinary_user_may" {
  command = plan
  assert {
    condition = alltrue([for network in openstack_networking_network_v2.link : network.value_specs == tomap({
      "provider:network_type" = "vlan", "provider:physical_network" = "physnet1"
    })])
    error_message = "a link is not asked for as a VLAN of the physical network"
  }
}

run "tags_that_are_too_long_for_nova" {
  command = plan
  variables {
    tags = {
      study = "smoke", expires = "2099-01-01T00:00:00Z"
      owner = "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz."
    }
  }
  assert {
    condition = alltrue([for host in openstack_compute_instance_v2.this : (
      alltrue([for tag in host.tags : length(tag) <= 60]) && host.metadata.longfat_owner == var.tags.owner
    )])
    error_message = "a machine's tags are longer than Nova takes, or its metadata do not have the whole owner"
  }
}

run "tags" {
  command = plan
  assert {
    condition = alltrue([
      for tags in concat(
        [for each in openstack_compute_instance_v2.this : each.tags],
        [for each in openstack_networking_floatingip_v2.this : each.tags],
        [for each in openstack_networking_network_v2.link : each.tags],
        [for each in openstack_networking_subnet_v2.link : each.tags],
        [for each in openstack_networking_port_v2.link : each.tags],
        [for each in openstack_networking_port_v2.management : each.tags],
        [openstack_networking_secgroup_v2.ssh.tags],
      ) : length(setsubtract(["study=smoke", "owner=lab", "expires=2099-01-01T00:00:00Z"], tags)) == 0
    ])
    error_message = "something rented does not say whose it is and until when"
  }
}

run "doors" {
  command = plan
  assert {
    condition = alltrue([for rule in openstack_networking_secgroup_rule_v2.ssh :
      rule.port_range_min == 22 && rule.port_range_max == 22 && contains(var.ssh_prefixes, rule.remote_ip_prefix)
    ])
    error_message = "something else than SSH from the stated prefixes is let in"
  }
  assert {
    condition     = openstack_networking_secgroup_rule_v2.ssh["2001:db8::/48"].ethertype == "IPv6"
    error_message = "a prefix of IPv6 is taken for one of IPv4"
  }
  assert {
    condition = alltrue([
      for host in openstack_compute_instance_v2.this : strcontains(host.user_data, "policy drop;")
    ])
    error_message = "a machine has no packet filter of its own"
  }
}

run "virtual_machines_without_lease" {
  variables {
    reservation_id        = null
    floating_ip_pool      = null
    link_physical_network = null
    flavor                = "m1.small"
    hosts = {
      alpha = { role = "receiver" }
      omega = { role = "sender", flavor = "m1.large" }
    }
    links = { direct = { a = "omega", b = "alpha" } }
  }

  override_resource {
    target = openstack_networking_port_v2.link["direct/alpha"]
    values = { id = "port-5", mac_address = "fa:16:3e:00:00:05" }
  }
  override_resource {
    target = openstack_networking_port_v2.link["direct/omega"]
    values = { id = "port-6", mac_address = "fa:16:3e:00:00:06" }
  }
  override_resource {
    target = openstack_compute_instance_v2.this["omega"]
    values = {
      id                = "ad091b52-742f-469e-8f3c-fd81cadf0744"
      access_ip_v4      = "192.0.2.78"
      availability_zone = "nova"
      network           = { mac = "0c:42:a1:00:01:01" }
    }
  }

  assert {
    condition = [for host in output.inventory.hosts : "${host.ssh.address} ${host.placement.machine_type}"] == [
      "192.0.2.77 m1.small", "192.0.2.78 m1.large"
    ]
    error_message = "addresses or flavors are not those of the machines"
  }
  assert {
    condition = [for host in output.inventory.hosts : host.nics[0].mac] == [
      "fa:16:3e:00:00:05", "0c:42:a1:00:01:01"
    ]
    error_message = "a card's address is not what its machine says, or without that, what its port had"
  }
  assert {
    condition     = openstack_networking_network_v2.link["direct"].value_specs == null
    error_message = "a physical network was asked for that was turned off"
  }
  assert {
    condition = (
      length(openstack_networking_floatingip_v2.this) == 0 &&
      length(openstack_compute_instance_v2.this["omega"].scheduler_hints) == 0
    )
    error_message = "something was asked for that was turned off"
  }
}

run "whole_world" {
  command = plan
  variables {
    ssh_prefixes = ["0.0.0.0/0"]
  }
  expect_failures = [var.ssh_prefixes]
}

run "whole_world_of_ipv6" {
  command = plan
  variables {
    ssh_prefixes = ["::/0"]
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

run "no_expiry" {
  command = plan
  variables {
    tags = { study = "smoke", owner = "lab", expires = "" }
  }
  expect_failures = [var.tags]
}

run "reservation_by_name" {
  command = plan
  variables {
    reservation_id = "my-lease"
  }
  expect_failures = [var.reservation_id]
}
