# SPDX-License-Identifier: Apache-2.0
mock_provider "libvirt" {
  mock_resource "libvirt_domain" {
    defaults = { id = 1, uuid = "6ba7b810-9dad-11d1-80b4-00c04fd430c8" }
  }
  mock_resource "libvirt_volume" {
    defaults = { id = "volume", key = "volume", path = "/pool/volume", allocation = 0, physical = 0 }
  }
  mock_resource "libvirt_cloudinit_disk" {
    defaults = { id = "seed", path = "/tmp/seed.iso", size = 0 }
  }
  mock_resource "libvirt_network" {
    defaults = { id = "network", uuid = "6ba7b811-9dad-11d1-80b4-00c04fd430c8" }
  }
}

variables {
  tags            = { study = "smoke", owner = "lab", expires = "2099-01-01T00:00:00Z" }
  image_url       = "https://example.org/image.qcow2"
  ssh_public_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAbc somebody"]
}

run "contract" {
  assert {
    condition = [for host in output.inventory.hosts : host.ssh.address] == [
      "192.168.126.10", "192.168.126.11", "192.168.126.12"
    ]
    error_message = "addresses are not those that DHCP gives"
  }
  assert {
    condition     = alltrue([for network in libvirt_network.link : network.forward == null && network.ips == null])
    error_message = "a link leads somewhere else"
  }
  assert {
    condition     = length(libvirt_domain.this["router"].devices.interfaces) == 3
    error_message = "the router has not two links and one card for SSH"
  }
  assert {
    condition     = length(libvirt_domain.this["sender"].devices.interfaces) == 3
    error_message = "the sender has not a cable to the receiver, a link to the router and one card for SSH"
  }
  assert {
    condition     = strcontains(libvirt_domain.this["sender"].title, "expires 2099-01-01T00:00:00Z")
    error_message = "a machine does not say when it expires"
  }
}

# Terraform drops what an object has too much without a word: whatever is set has to be seen to arrive.
run "nothing_is_dropped" {
  command = plan
  assert {
    condition = (
      libvirt_network.management.forward.mode == "nat" &&
      libvirt_network.management.ips[0].dhcp.hosts[2].name == "sender"
    )
    error_message = "the network for SSH has no forwarding or no fixed addresses"
  }
  assert {
    condition = (
      libvirt_network.management.ips[0].address == "192.168.126.1" && libvirt_network.management.ips[0].prefix == 24 &&
      libvirt_network.management.ips[0].dhcp.ranges[0].end == "192.168.126.30"
    )
    error_message = "the network for SSH has other addresses"
  }
  assert {
    condition = alltrue([for network in libvirt_network.link :
      network.mtu.size == 9000 && network.bridge.stp == "off" && network.bridge.delay == "0"
    ])
    error_message = "a link has another MTU or a spanning tree"
  }
  assert {
    condition = length(distinct(concat([libvirt_network.management.bridge.name], [
      for network in libvirt_network.link : network.bridge.name
    ]))) == 4 && alltrue([for network in libvirt_network.link : length(network.bridge.name) <= 15])
    error_message = "two networks share a bridge, or a bridge's name is longer than the kernel allows"
  }
  assert {
    condition = alltrue([for disk in libvirt_volume.disk :
      disk.target.format.type == "qcow2" && disk.backing_store.format.type == "qcow2" && disk.capacity == 10737418240
    ])
    error_message = "a disk is not a layer over the image"
  }
  assert {
    condition = alltrue([for machine in libvirt_domain.this : alltrue([
      machine.os.type_machine == "q35", machine.cpu.mode == "host-passthrough",
      machine.features.acpi, machine.destroy.graceful,
      machine.devices.rngs[0].backend.random == "/dev/urandom", machine.devices.consoles[0].target.type == "serial",
      machine.devices.disks[0].driver.type == "qcow2", machine.devices.disks[0].target.bus == "virtio",
      machine.devices.disks[1].driver.type == "raw", machine.devices.disks[1].target.bus == "virtio",
      machine.devices.disks[1].read_only,
      machine.devices.interfaces[0].source.network.network == "longfat-ssh",
      machine.devices.interfaces[0].wait_for_ip.source == "lease", machine.devices.interfaces[1].wait_for_ip == null,
      machine.devices.interfaces[1].model.type == "virtio", machine.memory == 2048, machine.memory_unit == "MiB",
    ])])
    error_message = "a machine is not described as it was meant"
  }
  assert {
    condition = [for card in libvirt_domain.this["router"].devices.interfaces : card.source.network.network] == [
      "longfat-ssh", "longfat-left", "longfat-right"
    ]
    error_message = "the router is not on its networks"
  }
}

run "alone" {
  command = plan
  variables {
    management_forward = "none"
  }
  assert {
    condition     = libvirt_network.management.forward == null
    error_message = "the network for SSH is forwarded"
  }
}

run "no_key" {
  command = plan
  variables {
    ssh_public_keys = []
  }
  expect_failures = [var.ssh_public_keys]
}

run "image_by_http" {
  command = plan
  variables {
    image_url = "http://example.org/image.qcow2"
  }
  expect_failures = [var.image_url]
}

run "image_with_its_checksum" {
  command = plan
  variables {
    image_url    = abspath("versions.tf")
    image_sha512 = filesha512("versions.tf")
  }
}

run "image_with_another_checksum" {
  command = plan
  variables {
    image_url    = abspath("versions.tf")
    image_sha512 = sha512("")
  }
  expect_failures = [libvirt_volume.image]
}

run "image_from_afar_with_a_checksum" {
  command = plan
  variables {
    image_sha512 = sha512("")
  }
  expect_failures = [libvirt_volume.image]
}

run "small_management_network" {
  command = plan
  variables {
    management_prefix = "192.168.126.0/28"
  }
  expect_failures = [var.management_prefix]
}

run "small_mtu" {
  command = plan
  variables {
    link_mtu_bytes = 68
  }
  expect_failures = [var.link_mtu_bytes]
}
