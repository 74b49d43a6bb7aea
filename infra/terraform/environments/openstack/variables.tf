# SPDX-License-Identifier: Apache-2.0
variable "tags" {
  description = "Study, owner and expiry (RFC 3339 in UTC); everything that the provider can tag carries them."
  type = object({
    study   = string
    owner   = string
    expires = string
  })

  validation {
    condition     = can(formatdate("YYYY", var.tags.expires)) && can(regex("Z$", var.tags.expires))
    error_message = "The expiry is a time in UTC such as 2030-01-31T18:00:00Z."
  }
}

variable "name" {
  description = "What the names of everything rented begin with, so that several labs fit into one project."
  type        = string
  default     = "longfat"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,15}$", var.name))
    error_message = "The name is a small letter, then small letters, digits and hyphens, 16 in all."
  }
}

variable "hosts" {
  description = "The machines by name; what is not stated for one is taken from flavor and reservation_id."
  type = map(object({
    role           = string
    flavor         = optional(string)
    reservation_id = optional(string)
  }))
  default = {
    receiver = { role = "receiver" }
    router   = { role = "router" }
    sender   = { role = "sender" }
  }

  validation {
    condition = alltrue([for host in var.hosts :
      host.reservation_id == null || can(regex("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", host.reservation_id))
    ])
    error_message = "A reservation is a UUID."
  }
}

variable "links" {
  description = "Links between two machines each, by name."
  type = map(object({
    a = string
    b = string
  }))
  default = {
    left  = { a = "sender", b = "router" }
    right = { a = "router", b = "receiver" }
  }

  validation {
    condition     = length(var.links) > 0
    error_message = "There is at least one link."
  }
}

variable "flavor" {
  description = "Flavor of machines that state none of their own."
  type        = string
  default     = "baremetal"

  validation {
    condition     = length(var.flavor) > 0
    error_message = "The flavor has a name."
  }
}

variable "reservation_id" {
  description = "Reservation within the lease (Blazar's, not the lease's own id); null where machines need no lease."
  type        = string
  default     = null

  validation {
    condition = var.reservation_id == null || can(
      regex("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", var.reservation_id)
    )
    error_message = "A reservation is a UUID."
  }
}

variable "image" {
  description = "Name of an image with cloud-init."
  type        = string

  validation {
    condition     = length(var.image) > 0
    error_message = "The image has a name."
  }
}

variable "management_network" {
  description = "Network for SSH that is there already, with a router to the outside."
  type        = string
  default     = "sharednet1"

  validation {
    condition     = length(var.management_network) > 0
    error_message = "The network has a name."
  }
}

variable "floating_ip_pool" {
  description = "Where public addresses come from; null if the management network is reached without."
  type        = string
  default     = "public"

  validation {
    condition     = try(length(var.floating_ip_pool) > 0, true)
    error_message = "The pool has a name, or there is none: null."
  }
}

variable "link_physical_network" {
  description = "Physical network on which each link gets a VLAN (bare metal); null leaves that to the cloud."
  type        = string
  default     = "physnet1"

  validation {
    condition     = try(length(var.link_physical_network) > 0, true)
    error_message = "The physical network has a name, or the cloud chooses: null."
  }
}

variable "ssh_public_key" {
  description = "Key that may log in, a line of authorized_keys."
  type        = string

  validation {
    condition = can(regex(
      "^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp256) [A-Za-z0-9+/=]+( [^\n]*)?$", trimspace(var.ssh_public_key)
    ))
    error_message = "The key is one line such as the content of id_ed25519.pub."
  }
}

variable "ssh_prefixes" {
  description = "Address prefixes from which SSH is let in: your own."
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

variable "ssh_user" {
  description = "The image's own user, to whom the key is given."
  type        = string
  default     = "cc"

  validation {
    condition     = can(regex("^[a-z_][a-z0-9_-]*$", var.ssh_user))
    error_message = "This is no name of a user."
  }
}
