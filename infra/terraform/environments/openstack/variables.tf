# SPDX-License-Identifier: Apache-2.0
variable "hosts" {
  description = "The machines by name; flavor and reservation_id are the defaults."
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

variable "flavor" {
  description = "Default flavor."
  type        = string
  default     = "baremetal"

  validation {
    condition     = length(var.flavor) > 0
    error_message = "The name must not be empty."
  }
}

variable "reservation_id" {
  description = "Blazar's reservation in the lease, not the id of the lease; null without a lease."
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
  description = "Name or UUID of an image with cloud-init."
  type        = string

  validation {
    condition     = length(var.image) > 0
    error_message = "The name must not be empty."
  }
}

variable "management_network" {
  description = "Existing network for SSH, with a router to the outside."
  type        = string
  default     = "sharednet1"

  validation {
    condition     = length(var.management_network) > 0
    error_message = "The name must not be empty."
  }
}

variable "floating_ip_pool" {
  description = "Pool of public addresses; null if the management network is reachable without them."
  type        = string
  default     = "public"

  validation {
    condition     = try(length(var.floating_ip_pool) > 0, true)
    error_message = "The name must not be empty; null for no pool."
  }
}

variable "link_physical_network" {
  description = "Physical network on which each link gets a VLAN (bare metal); null leaves that to the cloud."
  type        = string
  default     = "physnet1"

  validation {
    condition     = try(length(var.link_physical_network) > 0, true)
    error_message = "The name must not be empty; null lets the cloud choose."
  }
}

variable "ssh_user" {
  description = "The image's user, who gets the key."
  type        = string
  default     = "cc"

  validation {
    condition     = can(regex("^[a-z_][a-z0-9_-]*$", var.ssh_user))
    error_message = "A user name has lower-case letters, digits, _ and -."
  }
}
