# SPDX-License-Identifier: Apache-2.0
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

variable "ssh_user" {
  description = "The image's own user, to whom the key is given."
  type        = string
  default     = "cc"

  validation {
    condition     = can(regex("^[a-z_][a-z0-9_-]*$", var.ssh_user))
    error_message = "This is no name of a user."
  }
}
