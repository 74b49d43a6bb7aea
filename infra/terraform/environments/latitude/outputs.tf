# SPDX-License-Identifier: Apache-2.0
output "machines" {
  description = "Role and type of each machine, known before any is made."
  value = { for name, host in var.hosts : name => {
    role         = host.role
    machine_type = coalesce(host.plan, var.plan)
  } }
}
