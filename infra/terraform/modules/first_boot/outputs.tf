# SPDX-License-Identifier: Apache-2.0
output "user_data" {
  description = "Configuration for cloud-init at the first boot."
  value       = "#cloud-config\n${jsonencode(local.cloud_config)}\n"
}

output "filter" {
  description = "The files of the machine's own packet filter, by path; nftables.service loads them."
  value       = local.filter
}
