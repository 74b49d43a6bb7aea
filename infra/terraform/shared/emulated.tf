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
      can(formatdate("YYYY", var.tags.expires)) && can(regex("^.{10}T[0-9:]{8}Z$", var.tags.expires))
    )
    error_message = "The expiry is a time in UTC such as 2030-01-31T18:00:00Z."
  }
}
