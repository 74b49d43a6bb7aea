# SPDX-License-Identifier: Apache-2.0
# Variables of every environment that emulates machines; linked into its folder.
variable "tags" {
  description = "Study and owner of the lab; an expiry (RFC 3339 in UTC) is optional, because nothing is rented."
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

variable "links" {
  description = "Links between two machines each, by name."
  type = map(object({
    a = string
    b = string
  }))
  default = {
    direct = { a = "sender", b = "receiver" }
    left   = { a = "sender", b = "router" }
    right  = { a = "router", b = "receiver" }
  }

  validation {
    condition     = alltrue([for name in keys(var.links) : can(regex("^[a-z][a-z0-9-]{0,31}$", name)) && name != "ssh"])
    error_message = "A link's name has up to 32 lower-case letters, digits, hyphens, a letter first; ssh is reserved."
  }
}
