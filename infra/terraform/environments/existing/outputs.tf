# SPDX-License-Identifier: Apache-2.0
output "inventory" {
  description = "The lab as infra/inventory.schema.json describes it."
  value       = module.inventory.inventory
}
