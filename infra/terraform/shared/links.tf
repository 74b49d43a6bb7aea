# SPDX-License-Identifier: Apache-2.0
# Links of every environment whose machines can have paths; linked into its folder.
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

locals {
  # Both ends of each link, each with its peer.
  ends = { for end in flatten([for name, link in var.links : [
    { link = name, host = link.a, peer = link.b },
    { link = name, host = link.b, peer = link.a },
  ]]) : "${end.link}/${end.host}" => end if contains(keys(var.hosts), end.host) }
}
