# SPDX-License-Identifier: Apache-2.0
output "commands" {
  description = "QEMU's arguments for each machine, apart from those of the process."
  value       = local.commands
}

output "machines" {
  description = "Role and type of each machine, also before it exists."
  value = { for name, host in var.hosts : name => {
    role         = host.role
    machine_type = "${host.cpus} x ${var.accelerator}, ${host.memory_mib} MiB"
  } }
}
