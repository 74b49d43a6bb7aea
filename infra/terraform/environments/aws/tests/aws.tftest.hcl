# SPDX-License-Identifier: Apache-2.0
mock_provider "aws" {
  mock_resource "aws_instance" {
    defaults = { id = "i-1", public_ip = "192.0.2.31", availability_zone = "eu-north-1a" }
  }
  mock_data "aws_ami" {
    defaults = { id = "ami-1" }
  }
}

variables {
  tags           = { study = "smoke", owner = "lab", expires = "2099-01-01T00:00:00Z" }
  instance_type  = "c7i.2xlarge"
  ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAbc somebody"
  ssh_prefixes   = ["192.0.2.0/24", "2001:db8::/48"]
}

run "contract" {
  assert {
    condition = [for host in output.inventory.hosts : "${host.role} ${host.ssh.user}@${host.ssh.address}"] == [
      "worker admin@192.0.2.31"
    ]
    error_message = "the machine is no worker that SSH reaches"
  }
  assert {
    condition     = strcontains(output.inventory.filter["/etc/nftables.conf"], "ip saddr { 192.0.2.0/24 } tcp dport 22")
    error_message = "Ansible does not learn the stated prefixes"
  }
}

run "another_prefix" {
  command = plan
  variables {
    ssh_prefixes = ["198.51.100.0/24"]
  }
  assert {
    condition     = [for host in aws_instance.this : host.id] == ["i-1"]
    error_message = "another prefix makes another machine"
  }
  assert {
    condition     = strcontains(output.inventory.filter["/etc/nftables.conf"], "198.51.100.0/24")
    error_message = "Ansible does not learn the new prefix"
  }
}

run "a_machine_that_powers_off_at_the_expiry_costs_nothing_any_more" {
  command = plan
  assert {
    condition = alltrue([for host in aws_instance.this :
      host.instance_initiated_shutdown_behavior == "terminate" &&
      strcontains(host.user_data, "OnCalendar=2099-01-01 00:00:00 UTC")
    ])
    error_message = "a machine is not deleted at the expiry"
  }
  assert {
    condition     = alltrue([for host in aws_instance.this : host.volume_tags["longfat_owner"] == "lab"])
    error_message = "a disk does not say whose it is"
  }
}

run "doors" {
  command = plan
  assert {
    condition = [for rule in aws_vpc_security_group_ingress_rule.ssh :
      "${rule.from_port} ${coalesce(rule.cidr_ipv4, rule.cidr_ipv6)}"] == [
      "22 192.0.2.0/24", "22 2001:db8::/48"
    ]
    error_message = "something else than SSH from the stated prefixes is let in"
  }
}

run "spot" {
  command = plan
  variables {
    spot  = true
    hosts = { one = {}, two = { instance_type = "c7i.metal-24xl" } }
  }
  assert {
    condition = [for host in aws_instance.this : "${host.instance_type} ${host.instance_market_options[0].market_type}"] == [
      "c7i.2xlarge spot", "c7i.metal-24xl spot"
    ]
    error_message = "types or market are not those that were stated"
  }
}

run "a_path" {
  command = plan
  variables {
    hosts = { one = { role = "sender" } }
  }
  expect_failures = [var.hosts]
}
