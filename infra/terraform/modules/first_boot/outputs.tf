# SPDX-License-Identifier: Apache-2.0
output "user_data" {
  description = "What cloud-init reads at the first boot."
  value       = "#cloud-config\n${jsonencode(local.cloud_config)}\n"
}

output "ruleset" {
  description = "The machine's own packet filter, as nft reads it."
  value       = local.ruleset
}
