# SPDX-License-Identifier: Apache-2.0
output "inventory" {
  description = "The lab in the form of infra/inventory.schema.json."
  value = merge({
    format      = 1
    environment = var.environment
    tags        = var.tags
    hosts       = local.hosts
  }, length(local.paths) == 0 ? {} : { paths = local.paths }, length(var.filter) == 0 ? {} : { filter = var.filter })

  precondition {
    condition = local.declared_ends == local.existing_ends
    error_message = join(" ", [
      "Links and cards do not fit: declared are ${jsonencode(local.declared_ends)},",
      "cards are there for ${jsonencode(local.existing_ends)}.",
    ])
  }

  precondition {
    condition     = alltrue([for host in local.hosts : length(host.nics) > 0 || host.role == "worker"])
    error_message = "Each host but a worker must be an end of a link."
  }

  precondition {
    condition     = length(local.macs) == length(distinct(local.macs))
    error_message = "Two cards have the same MAC address: ${jsonencode(sort(local.macs))}."
  }

  precondition {
    condition     = length(local.doors) == length(distinct(local.doors))
    error_message = "Two hosts have the same address and port: ${jsonencode(sort(local.doors))}."
  }
}
