# SPDX-License-Identifier: Apache-2.0
# The output of every environment; linked into its folder.
output "inventory" {
  description = "The lab in the form of infra/inventory.schema.json."
  value       = module.inventory.inventory
}
