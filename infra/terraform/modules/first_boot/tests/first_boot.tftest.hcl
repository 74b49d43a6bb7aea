# SPDX-License-Identifier: Apache-2.0
variables {
  ssh_public_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAbc somebody"]
  ssh_prefixes    = ["192.0.2.0/24", "2001:db8::/48"]
}

run "user_data" {
  command = plan
  assert {
    condition     = startswith(output.user_data, "#cloud-config\n")
    error_message = "cloud-init would not know what this is"
  }
  assert {
    condition     = yamldecode(output.user_data).ssh_pwauth == false
    error_message = "passwords are accepted"
  }
  assert {
    condition = { for file in yamldecode(output.user_data).write_files : file.path => file.content } == {
      for path, content in output.filter : path => content
    }
    error_message = "the packet filter is not written"
  }
  assert {
    condition = alltrue([for rule in ["policy drop;", "ip saddr { 192.0.2.0/24 } tcp dport 22 accept"] :
      strcontains(output.filter["/etc/nftables.conf"], rule)
    ])
    error_message = "the packet filter is not what was asked for"
  }
  assert {
    condition = alltrue([for rule in ["policy drop;", "ip6 saddr { 2001:db8::/48 } tcp dport 22 accept"] :
      strcontains(output.filter["/etc/nftables-ip6.conf"], rule)
    ])
    error_message = "the packet filter of IPv6 is not what was asked for"
  }
  assert {
    condition     = !can(regex("inet |ip6|ipv6", output.filter["/etc/nftables.conf"]))
    error_message = "a kernel without IPv6 cannot load the rules of IPv4"
  }
}

run "the_machine_ends_the_lab_by_itself" {
  command = plan
  variables {
    expires = "2031-02-03T04:05:06Z"
  }
  assert {
    condition = strcontains(
      { for file in yamldecode(output.user_data).write_files : file.path => file.content }["/etc/systemd/system/longfat-expiry.timer"],
      "OnCalendar=2031-02-03 04:05:06 UTC\nPersistent=true\n"
    )
    error_message = "the timer is not set to the expiry"
  }
  assert {
    condition     = contains(yamldecode(output.user_data).runcmd, ["systemctl", "enable", "--now", "longfat-expiry.timer"])
    error_message = "the timer is not started"
  }
}

run "no_data_plane" {
  command = plan
  variables {
    ssh_prefixes = ["192.0.2.0/24"]
  }
  assert {
    condition     = !strcontains(output.filter["/etc/nftables.conf"], "notrack")
    error_message = "an empty list leaves a rule"
  }
  assert {
    condition     = !strcontains(output.filter["/etc/nftables-ip6.conf"], "tcp dport 22")
    error_message = "an empty list leaves a rule of IPv6"
  }
}

run "ipv6_only" {
  command = plan
  variables {
    ssh_prefixes = ["2001:db8::/48"]
  }
  assert {
    condition = alltrue([for path in ["/etc/nftables.conf", "/etc/nftables-ip6.conf"] :
      strcontains(output.filter[path], "policy drop;")
    ])
    error_message = "a family without a prefix is let in"
  }
}

run "whole_world" {
  command = plan
  variables {
    ssh_prefixes = ["0.0.0.0/0"]
  }
  expect_failures = [var.ssh_prefixes]
}

run "whole_world_in_halves" {
  command = plan
  variables {
    ssh_prefixes = ["0.0.0.0/1", "128.0.0.0/1"]
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

run "from_nowhere" {
  command = plan
  variables {
    ssh_prefixes = []
  }
  expect_failures = [var.ssh_prefixes]
}

run "data_plane_of_the_world" {
  command = plan
  variables {
    data_plane_prefixes = ["0.0.0.0/0"]
  }
  expect_failures = [var.data_plane_prefixes]
}

run "not_a_key" {
  command = plan
  variables {
    ssh_public_keys = ["-----BEGIN OPENSSH PRIVATE KEY-----"]
  }
  expect_failures = [var.ssh_public_keys]
}
