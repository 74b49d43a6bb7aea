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
    condition     = yamldecode(output.user_data).write_files[0].content == output.ruleset
    error_message = "the packet filter is not written"
  }
  assert {
    condition = alltrue([for rule in ["policy drop;", "ip saddr { 192.0.2.0/24 } tcp dport 22 accept"] :
      strcontains(output.ruleset, rule)
    ])
    error_message = "the packet filter is not what was asked for"
  }
  assert {
    condition     = strcontains(output.ruleset, "ip6 saddr { 2001:db8::/48 } tcp dport 22 accept")
    error_message = "a prefix of IPv6 is forgotten"
  }
}

run "no_data_plane" {
  command = plan
  variables {
    data_plane_prefixes = []
    ssh_prefixes        = ["192.0.2.0/24"]
  }
  assert {
    condition     = !strcontains(output.ruleset, "notrack") && !strcontains(output.ruleset, "ip6 saddr {")
    error_message = "an empty list leaves a rule"
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
