# SPDX-License-Identifier: Apache-2.0
variables {
  tags  = { study = "smoke", owner = "lab" }
  links = { path = { a = "here", b = "there" } }
  hosts = {
    here = {
      role     = "sender"
      ssh      = { address = "192.0.2.1", host_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAbc" }
      nics     = { path = { pci = "0000:3b:00.1" } }
      location = "cellar"
    }
    there = {
      role = "receiver"
      ssh  = { address = "2001:db8::3", port = 2222, user = "debian" }
      nics = { path = { mac = "52:54:00:00:00:02", vlan = 12 } }
    }
  }
}

run "contract" {
  assert {
    condition     = output.inventory.hosts[0].placement.location == "cellar" && output.inventory.tags.expires == null
    error_message = "what was declared is not in the inventory"
  }
}

run "cable" {
  assert {
    condition     = !can(output.inventory.paths)
    error_message = "a link without a delay of its own is in the inventory's paths"
  }
}

run "path_with_a_delay" {
  variables {
    links = { path = { a = "here", b = "there", round_trip_us = 20000 } }
  }
  assert {
    condition     = output.inventory.paths.path.round_trip_us == 20000
    error_message = "the path's own round trip is not in the inventory"
  }
}

run "host_key_of_another_form" {
  command = plan
  variables {
    hosts = {
      here = {
        role = "sender"
        ssh  = { address = "192.0.2.1", host_key = "SHA256:abc" }
        nics = { path = { pci = "0000:3b:00.1" } }
      }
      there = {
        role = "receiver"
        ssh  = { address = "192.0.2.2" }
        nics = { path = { pci = "0000:3b:00.1" } }
      }
    }
  }
  expect_failures = [var.hosts]
}

run "no_link" {
  command = plan
  variables {
    links = {}
  }
  expect_failures = [var.links]
}

run "expiry_of_another_form" {
  command = plan
  variables {
    tags = { study = "smoke", owner = "lab", expires = "tomorrow" }
  }
  expect_failures = [var.tags]
}
