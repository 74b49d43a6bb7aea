# SPDX-License-Identifier: Apache-2.0
# Links of every environment whose rented machines can have paths; linked into its folder.
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
}

locals {
  ends = {
    for end in flatten([
      for name, link in var.links : [for host in [link.a, link.b] : { link = name, host = host }]
    ]) : "${end.link}/${end.host}" => end if contains(keys(var.hosts), end.host)
  }
}
