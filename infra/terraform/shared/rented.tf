# SPDX-License-Identifier: Apache-2.0
# Variables and parts of every environment whose machines are rented; linked into its folder.
variable "tags" {
  description = "Study, owner and expiry (RFC 3339 in UTC); all resources are tagged with them."
  type = object({
    study   = string
    owner   = string
    expires = string
  })

  validation {
    condition     = can(formatdate("YYYY", var.tags.expires)) && can(regex("^.{10}T[0-9:]{8}Z$", var.tags.expires))
    error_message = "The expiry is a time in UTC such as 2030-01-31T18:00:00Z."
  }
}

variable "name" {
  description = "Prefix of all names, so that several labs fit into one project."
  type        = string
  default     = "longfat"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,15}$", var.name))
    error_message = "The name is a lower-case letter, then lower-case letters, digits and hyphens, 16 in all."
  }
}

variable "ssh_public_key" {
  description = "Public key with access, a line of authorized_keys."
  type        = string

  validation {
    condition = can(regex(
      "^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp256) [A-Za-z0-9+/=]+( [^\n]*)?$", trimspace(var.ssh_public_key)
    ))
    error_message = "The key is one line such as the content of id_ed25519.pub."
  }
}

variable "ssh_prefixes" {
  description = "Your address prefixes, which get access by SSH."
  type        = set(string)

  validation {
    condition     = length(var.ssh_prefixes) > 0 && alltrue([for prefix in var.ssh_prefixes : can(cidrhost(prefix, 0))])
    error_message = "At least one prefix is needed, each such as 192.0.2.0/24 or 2001:db8::/48."
  }

  validation {
    condition = alltrue([for prefix in var.ssh_prefixes :
      try(tonumber(split("/", prefix)[1]), 0) >= (strcontains(prefix, ":") ? 16 : 8)
    ])
    error_message = "The prefix covers too much of the Internet; allowed: from /8 for IPv4, from /16 for IPv6."
  }
}

check "expiry" {
  assert {
    condition     = timecmp(plantimestamp(), var.tags.expires) < 0
    error_message = "The expiry ${var.tags.expires} has passed: this lab may be destroyed at any time."
  }
}

module "first_boot" {
  source = "../../modules/first_boot"

  ssh_public_keys = [trimspace(var.ssh_public_key)]
  ssh_prefixes    = var.ssh_prefixes
  expires         = var.tags.expires
}
