# SPDX-License-Identifier: Apache-2.0
variable "project" {
  description = "Existing project (id or slug) with billing on demand."
  type        = string

  validation {
    condition     = length(var.project) > 0
    error_message = "The project must not be empty."
  }
}

variable "site" {
  description = "Site of all machines and links, such as ASH or FRA."
  type        = string

  validation {
    condition     = can(regex("^[A-Z]{3}[0-9]*$", var.site))
    error_message = "A site is three capital letters, and possibly digits."
  }
}

variable "hosts" {
  description = "The machines by name; plan and data_interface are the defaults."
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
}

variable "plan" {
  description = "Default kind of machine; the provider's list has the price of an hour."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9-]+$", var.plan))
    error_message = "A plan has the provider's form: m4-metal-medium."
  }
}

# The error for a wrong name lists the existing names, after the machine is made.
variable "data_interface" {
  description = "The provider's name of the card for the links."
  type        = string

  validation {
    condition     = length(var.data_interface) > 0
    error_message = "The name must not be empty."
  }
}

variable "operating_system" {
  description = "Operating system that the provider installs."
  type        = string
  default     = "debian_12"

  validation {
    condition     = can(regex("^(debian|ubuntu)_[a-z0-9_]+$", var.operating_system))
    error_message = "The operating system is a Debian or Ubuntu, in the provider's form: debian_12."
  }
}

variable "ssh_user" {
  description = "The image's user, who gets the key."
  type        = string
  default     = "root"

  validation {
    condition     = can(regex("^[a-z_][a-z0-9_-]*$", var.ssh_user))
    error_message = "A user name has lower-case letters, digits, _ and -."
  }
}
