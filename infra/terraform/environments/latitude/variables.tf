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
  default     = "root"

  validation {
    condition     = can(regex("^[a-z_][a-z0-9_-]*$", var.ssh_user))
    error_message = "This is no name of a user."
  }
}
