# SPDX-License-Identifier: Apache-2.0
variable "environment" {
  description = "Folder below infra/terraform/environments that made the hosts."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,31}$", var.environment))
    error_message = "The environment is the name of a folder: lower-case letters, digits and hyphens, a letter first."
  }
}

variable "tags" {
  description = "Study and owner of the hosts, and their expiry (RFC 3339 in UTC; null if nothing is rented)."
  type = object({
    study   = string
    owner   = string
    expires = optional(string)
  })

  validation {
    condition = alltrue([
      for tag in [var.tags.study, var.tags.owner] : can(regex("^[A-Za-z0-9][A-Za-z0-9@._-]{0,62}$", tag))
    ])
    error_message = "Study and owner have 1 to 63 letters, digits and any of @ . _ -, a letter or digit first."
  }

  validation {
    condition = var.tags.expires == null || (
      can(formatdate("YYYY", var.tags.expires)) && can(regex("^.{10}T[0-9:]{8}Z$", var.tags.expires))
    )
    error_message = "The expiry is a time in UTC such as 2030-01-31T18:00:00Z."
  }
}

variable "links" {
  description = "Two hosts for each link, by name; round_trip_us if its path has its own delay."
  type = map(object({
    a             = string
    b             = string
    round_trip_us = optional(number)
  }))

  validation {
    condition     = alltrue([for name in keys(var.links) : can(regex("^[a-z][a-z0-9-]{0,31}$", name))])
    error_message = "A link's name is a lower-case letter, then lower-case letters, digits and hyphens, 32 in all."
  }

  validation {
    condition     = alltrue([for link in var.links : link.a != link.b])
    error_message = "A link joins two different hosts."
  }

  validation {
    condition = alltrue([for link in var.links : link.round_trip_us == null ? true : (
      link.round_trip_us >= 1 && link.round_trip_us <= 2000000 && floor(link.round_trip_us) == link.round_trip_us
    )])
    error_message = "A round trip is a whole number of microseconds, from 1 to 2000000 (2 s)."
  }
}

variable "filter" {
  description = "Files of each host's packet filter, by path: the output of first_boot."
  type        = map(string)
  default     = {}
}

variable "hosts" {
  description = "The hosts by name; nics has the cards of the data plane by link."
  type = map(object({
    role = string
    ssh = object({
      address  = string
      port     = optional(number, 22)
      user     = optional(string, "root")
      host_key = optional(string)
    })
    nics = map(object({
      mac  = optional(string)
      pci  = optional(string)
      vlan = optional(number)
    }))
    placement = object({
      provider     = string
      location     = optional(string)
      machine_type = optional(string)
      id           = optional(string)
    })
  }))

  validation {
    condition     = alltrue([for name in keys(var.hosts) : can(regex("^[a-z][a-z0-9-]{0,31}$", name))])
    error_message = "A host's name is a lower-case letter, then lower-case letters, digits and hyphens, 32 in all."
  }

  validation {
    condition     = alltrue([for host in var.hosts : contains(["sender", "receiver", "router", "worker"], host.role)])
    error_message = "A host's role is sender, receiver, router or worker."
  }

  validation {
    condition = length(var.hosts) > 0 && alltrue([for host in var.hosts : host.role == "worker"]) || (
      length(setsubtract(["sender", "receiver"], [for host in var.hosts : host.role])) == 0 &&
      alltrue([for host in var.hosts : host.role != "worker"])
    )
    error_message = "There must be workers only, or at least one sender and one receiver."
  }

  validation {
    condition     = alltrue([for host in var.hosts : host.ssh.port >= 1 && host.ssh.port <= 65535])
    error_message = "A port is a number from 1 to 65535."
  }

  validation {
    condition = alltrue(flatten([for host in var.hosts : [
      for nic in host.nics : nic.mac != null || nic.pci != null
    ]]))
    error_message = "Each network card needs its MAC address or its PCI address."
  }

  validation {
    condition = alltrue(flatten([for host in var.hosts : [for nic in host.nics :
      nic.mac == null || can(regex("^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$", nic.mac))
    ]]))
    error_message = "A MAC address is six pairs of hexadecimal digits with colons between them."
  }

  validation {
    condition = alltrue(flatten([for host in var.hosts : [for nic in host.nics :
      nic.pci == null || can(regex("^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]$", nic.pci))
    ]]))
    error_message = "A PCI address has the form of lspci -D: 0000:3b:00.1."
  }

  validation {
    condition = alltrue(flatten([for host in var.hosts : [for nic in host.nics :
      nic.vlan == null ? true : nic.vlan >= 1 && nic.vlan <= 4094
    ]]))
    error_message = "A VLAN is a number from 1 to 4094."
  }
}
