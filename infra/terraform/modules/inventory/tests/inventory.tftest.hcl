# SPDX-License-Identifier: Apache-2.0
variables {
  environment = "existing"
  tags        = { study = "smoke", owner = "lab@example.org", expires = "2099-01-01T00:00:00Z" }
  links       = { left = { a = "alpha", b = "middle" }, right = { a = "middle", b = "omega" } }
  hosts = {
    alpha = {
      role      = "sender"
      ssh       = { address = "192.0.2.1" }
      nics      = { left = { mac = "52:54:00:00:00:0A" } }
      placement = { provider = "none" }
    }
    middle = {
      role      = "router"
      ssh       = { address = "192.0.2.2", user = "debian" }
      nics      = { left = { mac = "52:54:00:00:00:02", vlan = 7 }, right = { mac = "52:54:00:00:00:02", vlan = 8 } }
      placement = { provider = "none" }
    }
    omega = {
      role      = "receiver"
      ssh       = { address = "192.0.2.3", port = 2222 }
      nics      = { right = { pci = "0000:3b:00.1" } }
      placement = { provider = "none" }
    }
  }
}

run "contract" {
  assert {
    condition     = [for host in output.inventory.hosts : host.name] == ["alpha", "middle", "omega"]
    error_message = "hosts are not in the order of their names"
  }
  assert {
    condition     = output.inventory.hosts[0].nics[0].mac == "52:54:00:00:00:0a"
    error_message = "a MAC address is not in small letters"
  }
  assert {
    condition     = output.inventory.hosts[0].ssh.port == 22 && output.inventory.hosts[2].ssh.port == 2222
    error_message = "ports are not those declared"
  }
}

run "path_without_a_length" {
  command = plan
  variables {
    links = { left = { a = "alpha", b = "middle", round_trip_us = 0 }, right = { a = "middle", b = "omega" } }
  }
  expect_failures = [var.links]
}

run "link_to_nowhere" {
  command = plan
  variables {
    links = { left = { a = "alpha", b = "middle" }, right = { a = "middle", b = "nowhere" } }
  }
  expect_failures = [output.inventory]
}

run "mac_address_twice" {
  command = plan
  variables {
    links = { left = { a = "alpha", b = "omega" } }
    hosts = {
      alpha = {
        role      = "sender"
        ssh       = { address = "192.0.2.1" }
        nics      = { left = { mac = "52:54:00:00:00:01" } }
        placement = { provider = "none" }
      }
      omega = {
        role      = "receiver"
        ssh       = { address = "192.0.2.3" }
        nics      = { left = { mac = "52:54:00:00:00:01" } }
        placement = { provider = "none" }
      }
    }
  }
  expect_failures = [output.inventory]
}

run "no_receiver" {
  command = plan
  variables {
    links = { left = { a = "alpha", b = "omega" } }
    hosts = {
      alpha = {
        role      = "sender"
        ssh       = { address = "192.0.2.1" }
        nics      = { left = { mac = "52:54:00:00:00:01" } }
        placement = { provider = "none" }
      }
      omega = {
        role      = "router"
        ssh       = { address = "192.0.2.3" }
        nics      = { left = { mac = "52:54:00:00:00:03" } }
        placement = { provider = "none" }
      }
    }
  }
  expect_failures = [var.hosts]
}

run "expiry_without_zone" {
  command = plan
  variables {
    tags = { study = "smoke", owner = "lab", expires = "2099-01-01T00:00:00.5Z" }
  }
  expect_failures = [var.tags]
}

run "link_to_itself" {
  command = plan
  variables {
    links = { left = { a = "alpha", b = "alpha" } }
  }
  expect_failures = [var.links]
}
