# SPDX-License-Identifier: Apache-2.0
output "commands" {
  description = "QEMU's arguments for each machine, without those of its life as a process."
  value       = local.commands
}

output "machines" {
  description = "Role and type of each machine, known before any is made."
  value = { for name, host in var.hosts : name => {
    role         = host.role
    machine_type = "${host.cpus} x ${var.accelerator}, ${host.memory_mib} MiB"
  } }
}
