# SPDX-License-Identifier: Apache-2.0
variable "tags" {
  description = "Study and owner of the lab; an expiry (RFC 3339 in UTC) if the machines are only lent."
  type = object({
    study   = string
    owner   = string
    expires = optional(string)
  })

  validation {
    condition = var.tags.expires == null || (
      can(formatdate("YYYY", var.tags.expires)) && can(regex("Z$", var.tags.expires))
    )
    error_message = "The expiry is a time in UTC such as 2030-01-31T18:00:00Z."
  }
}

variable "hosts" {
  description = "The machines by name; nics has the cards of the data plane by link."
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
    location     = optional(string)
    machine_type = optional(string)
  }))

  validation {
    condition     = alltrue([for host in var.hosts : can(regex("^[0-9A-Za-z.:-]+$", host.ssh.address))])
    error_message = "An address is an IPv4 or IPv6 address, or a name."
  }

  validation {
    condition = alltrue([for key in [for host in var.hosts : host.ssh.host_key] :
      key == null || can(regex("^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp256) [A-Za-z0-9+/=]+$", key))
    ])
    error_message = "A host key is its type and base64, in the form of ssh-keyscan after the name."
  }
}

variable "links" {
  description = "Links between two machines each, by name; round_trip_us (by ping) of a link with its own delay."
  type = map(object({
    a             = string
    b             = string
    round_trip_us = optional(number)
  }))

  validation {
    condition     = length(var.links) > 0
    error_message = "At least one link is needed."
  }
}
