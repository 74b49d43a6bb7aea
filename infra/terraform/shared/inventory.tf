# SPDX-License-Identifier: Apache-2.0
# The output of every environment; linked into its folder.
output "inventory" {
  description = "The lab as infra/inventory.schema.json describes it."
  value       = module.inventory.inventory
}
