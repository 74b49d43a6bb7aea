# SPDX-License-Identifier: Apache-2.0
# What QEMU would be called with. That machines start, die and end is tested with a stub in tests/infra.
variables {
  tags           = { study = "smoke", owner = "lab" }
  folder         = "/nowhere/lab"
  image          = "/nowhere/image.raw"
  ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAbc somebody"
}

run "network" {
  command = plan
  assert {
    condition = alltrue([for name, command in output.commands : contains(command, join(",", [
      "user,id=ssh,restrict=on,ipv6=off,net=192.168.127.0/24",
      "hostfwd=tcp:127.0.0.1:${var.hosts[name].ssh_port}-:22",
    ]))])
    error_message = "a machine reaches more than this host, or is reached from elsewhere"
  }
  assert {
    condition = contains(output.commands["sender"], join(",", [
      "dgram,id=left,local.type=unix,local.path=/nowhere/lab/left@sender",
      "remote.type=unix,remote.path=/nowhere/lab/left@router",
    ]))
    error_message = "the sender's end of the left link is not what it should be"
  }
  assert {
    condition     = length([for word in output.commands["router"] : word if startswith(word, "dgram,")]) == 2
    error_message = "the router has not two links"
  }
  assert {
    condition = contains(output.commands["receiver"], join(",", [
      "dgram,id=direct,local.type=unix,local.path=/nowhere/lab/direct@receiver",
      "remote.type=unix,remote.path=/nowhere/lab/direct@sender",
    ]))
    error_message = "sender and receiver have no link of their own"
  }
  assert {
    condition     = output.machines["router"] == { role = "router", machine_type = "1 x tcg, 512 MiB" }
    error_message = "what a machine is cannot be said before it is made"
  }
  assert {
    condition     = !contains(output.commands["router"], "-kernel")
    error_message = "there is a kernel although none was given"
  }
}

run "direct_boot" {
  command = plan
  variables {
    boot = { kernel = "/nowhere/vmlinuz", initrd = "/nowhere/initrd", command_line = "root=/dev/vda quiet" }
  }
  assert {
    condition = strcontains(
      join(" ", output.commands["sender"]),
      " -kernel /nowhere/vmlinuz -append root=/dev/vda quiet -initrd /nowhere/initrd ",
    )
    error_message = "the kernel is not loaded as told"
  }
}

run "relative_folder" {
  command = plan
  variables {
    folder = "lab"
  }
  expect_failures = [var.folder]
}

run "folder_too_long_for_sockets" {
  command = plan
  variables {
    folder = "/nowhere/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
  }
  expect_failures = [var.folder]
}

run "privileged_port" {
  command = plan
  variables {
    hosts = {
      sender   = { role = "sender", ssh_port = 22 }
      receiver = { role = "receiver", ssh_port = 22203 }
    }
    links = { direct = { a = "sender", b = "receiver" } }
  }
  expect_failures = [var.hosts]
}

run "expiry_not_in_utc" {
  command = plan
  variables {
    tags = { study = "smoke", owner = "lab", expires = "2099-01-01T00:00:00+02:00" }
  }
  expect_failures = [var.tags]
}

run "injection_by_path" {
  command = plan
  variables {
    image = "/nowhere/image.raw,readonly=off' ; true '"
  }
  expect_failures = [var.image]
}

run "unknown_accelerator" {
  command = plan
  variables {
    accelerator = "xen"
  }
  expect_failures = [var.accelerator]
}
