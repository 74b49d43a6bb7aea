# SPDX-License-Identifier: Apache-2.0
variable "ssh_public_keys" {
  description = "Public keys with access, as lines of authorized_keys."
  type        = set(string)

  validation {
    condition = length(var.ssh_public_keys) > 0 && alltrue([for key in var.ssh_public_keys :
      can(regex("^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp256) [A-Za-z0-9+/=]+( [^\n]*)?$", key))
    ])
    error_message = "At least one key is needed, each one line such as the content of id_ed25519.pub."
  }
}

variable "ssh_prefixes" {
  description = "Address prefixes with access by SSH; nothing else is open."
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

# None by default: the cards of a run are in namespaces, and a management network may have the same addresses. Packets
# from these addresses bypass connection tracking, if they arrive at the card with the route to them.
variable "data_plane_prefixes" {
  description = "Addresses that reach every port, on links outside of runs, such as 10.0.0.0/16."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for prefix in var.data_plane_prefixes : can(cidrnetmask(prefix))])
    error_message = "Each prefix is an IPv4 prefix such as 10.0.0.0/16."
  }

  validation {
    condition     = alltrue([for prefix in var.data_plane_prefixes : try(tonumber(split("/", prefix)[1]), 0) >= 8])
    error_message = "The data plane covers too much of the Internet; allowed: from /8."
  }
}

variable "expires" {
  description = "Time (RFC 3339 in UTC) at which the machine powers off by itself; null for never."
  type        = string
  default     = null
}
