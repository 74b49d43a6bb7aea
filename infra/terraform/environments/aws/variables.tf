# SPDX-License-Identifier: Apache-2.0
# Workers only: networks of EC2 are routed and belong to no path of a run.
variable "hosts" {
  description = "The workers by name; instance_type is the default."
  type = map(object({
    role          = optional(string, "worker")
    instance_type = optional(string)
  }))
  default = { worker1 = {} }

  validation {
    condition     = alltrue([for host in var.hosts : host.role == "worker"])
    error_message = "Each machine of aws is a worker."
  }
}

variable "instance_type" {
  description = "Default type, x86-64."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9-]+\\.[a-z0-9-]+$", var.instance_type))
    error_message = "A type has the form c7i.2xlarge or c7i.metal-24xl."
  }
}

variable "spot" {
  description = "Whether spot instances are asked for, which are cheaper and may be taken away."
  type        = bool
  default     = false
}

variable "disk_gib" {
  description = "Size of each machine's disk."
  type        = number
  default     = 20

  validation {
    condition     = var.disk_gib >= 10 && floor(var.disk_gib) == var.disk_gib
    error_message = "The size is a whole number of GiB, at least 10."
  }
}
