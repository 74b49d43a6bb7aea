# SPDX-License-Identifier: Apache-2.0
variable "ssh_public_keys" {
  description = "Keys that may log in, as lines of authorized_keys."
  type        = set(string)

  validation {
    condition = length(var.ssh_public_keys) > 0 && alltrue([for key in var.ssh_public_keys :
      can(regex("^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp256) [A-Za-z0-9+/=]+( [^\n]*)?$", key))
    ])
    error_message = "At least one key is needed, each one line such as the content of id_ed25519.pub."
  }
}

variable "ssh_prefixes" {
  description = "Address prefixes from which SSH is let in; nothing else is from anywhere."
  type        = set(string)

  validation {
    condition     = length(var.ssh_prefixes) > 0 && alltrue([for prefix in var.ssh_prefixes : can(cidrhost(prefix, 0))])
    error_message = "At least one prefix is needed, each such as 192.0.2.0/24 or 2001:db8::/48."
  }

  validation {
    condition = alltrue([for prefix in var.ssh_prefixes :
      try(tonumber(split("/", prefix)[1]), 0) >= (strcontains(prefix, ":") ? 16 : 8)
    ])
    error_message = "A prefix that takes in much of the Internet is refused: at least /8 for IPv4, /16 for IPv6."
  }
}

# Packets from there are let in past connection tracking, if they come by the card that leads there.
variable "data_plane_prefixes" {
  description = "Addresses that the experiments use on their own links; runs assign those of 10.0.0.0/16."
  type        = set(string)
  default     = ["10.0.0.0/16"]

  validation {
    condition     = alltrue([for prefix in var.data_plane_prefixes : can(cidrnetmask(prefix))])
    error_message = "Each prefix is one of IPv4 such as 10.0.0.0/16."
  }

  validation {
    condition     = alltrue([for prefix in var.data_plane_prefixes : try(tonumber(split("/", prefix)[1]), 0) >= 8])
    error_message = "A data plane that takes in much of the Internet is refused: at least /8."
  }
}
