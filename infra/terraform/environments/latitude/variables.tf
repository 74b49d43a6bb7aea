# SPDX-License-Identifier: Apache-2.0
variable "project" {
  description = "Project (id or slug) that is there already and is billed on demand."
  type        = string

  validation {
    condition     = length(var.project) > 0
    error_message = "The project has an id."
  }
}

variable "site" {
  description = "Where the machines and their links are, such as ASH or FRA; all at one site."
  type        = string

  validation {
    condition     = can(regex("^[A-Z]{3}[0-9]*$", var.site))
    error_message = "A site is three capital letters and perhaps a digit."
  }
}

variable "hosts" {
  description = "The machines by name; what is not stated for one is taken from plan and data_interface."
  type = map(object({
    role           = string
    plan           = optional(string)
    data_interface = optional(string)
  }))
  default = {
    receiver = { role = "receiver" }
    router   = { role = "router" }
    sender   = { role = "sender" }
  }

  validation {
    condition     = length(var.hosts) >= 2
    error_message = "There are at least a sender and a receiver."
  }
}

variable "plan" {
  description = "Kind of machine, for those that state none of their own; the provider's list tells what an hour costs."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9-]+$", var.plan))
    error_message = "A plan is written as the provider does: m4-metal-medium."
  }
}

# A wrong name is answered with those there are, once the machine is there.
variable "data_interface" {
  description = "Name under which the provider lists the card that carries the links."
  type        = string

  validation {
    condition     = length(var.data_interface) > 0
    error_message = "The card has a name."
  }
}

variable "operating_system" {
  description = "Operating system that the provider installs."
  type        = string
  default     = "debian_12"

  validation {
    condition     = can(regex("^(debian|ubuntu)_[a-z0-9_]+$", var.operating_system))
    error_message = "The operating system is a Debian or Ubuntu, as the provider writes it: debian_12."
  }
}

variable "ssh_user" {
  description = "The image's own user, to whom the key is given."
  type        = string
  default     = "root"

  validation {
    condition     = can(regex("^[a-z_][a-z0-9_-]*$", var.ssh_user))
    error_message = "This is no name of a user."
  }
}
