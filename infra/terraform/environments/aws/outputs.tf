# SPDX-License-Identifier: Apache-2.0
output "machines" {
  description = "Role and type of each machine, also before it exists."
  value = { for name, host in var.hosts : name => {
    role         = host.role
    machine_type = coalesce(host.instance_type, var.instance_type)
  } }
}
