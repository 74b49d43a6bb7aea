# SPDX-License-Identifier: Apache-2.0
variable "name" {
  description = "Prefix of all names in libvirt, so that several labs fit on one host."
  type        = string
  default     = "longfat"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,15}$", var.name))
    error_message = "The name is a lower-case letter, then lower-case letters, digits and hyphens, 16 in all."
  }
}

variable "hosts" {
  description = "The machines by name."
  type = map(object({
    role       = string
    cpus       = optional(number, 2)
    memory_mib = optional(number, 2048)
  }))
  default = {
    receiver = { role = "receiver" }
    router   = { role = "router" }
    sender   = { role = "sender" }
  }

  validation {
    condition     = alltrue([for host in var.hosts : host.cpus >= 1 && host.memory_mib >= 256])
    error_message = "A machine has at least one processor and 256 MiB."
  }
}

variable "link_mtu_bytes" {
  description = "MTU of the links, at least the largest of the runs."
  type        = number
  default     = 9000

  validation {
    condition     = var.link_mtu_bytes >= 1280 && var.link_mtu_bytes <= 65521
    error_message = "An MTU is from 1280 to 65521 bytes."
  }
}

variable "image_url" {
  description = "Disk image in qcow2 with cloud-init, as an address or a path of the host where Terraform runs."
  type        = string

  validation {
    condition     = can(regex("^(https://|file:///|/)[^ ]+$", var.image_url))
    error_message = "The image is an https address or an absolute path."
  }
}

variable "image_sha512" {
  description = "SHA-512 of the image, which then must be a file here, as the provider compares nothing; null for any."
  type        = string
  default     = null

  validation {
    condition     = var.image_sha512 == null || can(regex("^[0-9a-f]{128}$", var.image_sha512))
    error_message = "A SHA-512 has 128 hexadecimal digits."
  }
}

variable "pool" {
  description = "Storage pool of libvirt for the disks."
  type        = string
  default     = "default"

  validation {
    condition     = length(var.pool) > 0
    error_message = "The name must not be empty."
  }
}

variable "disk_gib" {
  description = "Size of each machine's disk, at least that of the image."
  type        = number
  default     = 10

  validation {
    condition     = var.disk_gib >= 1 && floor(var.disk_gib) == var.disk_gib
    error_message = "The size is a whole number of GiB."
  }
}

variable "domain_type" {
  description = "kvm, or qemu for software emulation."
  type        = string
  default     = "kvm"

  validation {
    condition     = contains(["kvm", "qemu"], var.domain_type)
    error_message = "The type is kvm or qemu."
  }
}

variable "management_prefix" {
  description = "Addresses of the network for SSH between the host and the machines; at least a /27."
  type        = string
  default     = "192.168.126.0/24"

  validation {
    condition     = can(cidrhost(var.management_prefix, 30)) && !strcontains(var.management_prefix, ":")
    error_message = "The prefix is an IPv4 prefix with room for 31 addresses, such as 192.168.126.0/24."
  }
}

variable "management_forward" {
  description = "nat gives the machines access to the host's networks, to install packages; none isolates them."
  type        = string
  default     = "nat"

  validation {
    condition     = contains(["nat", "none"], var.management_forward)
    error_message = "The mode is nat or none."
  }
}

variable "ssh_public_keys" {
  description = "Public keys with access, as lines of authorized_keys."
  type        = set(string)

  validation {
    condition     = length(var.ssh_public_keys) > 0
    error_message = "At least one key is needed."
  }
}

variable "ssh_user" {
  description = "The image's user, who gets the keys from cloud-init."
  type        = string
  default     = "debian"

  validation {
    condition     = can(regex("^[a-z_][a-z0-9_-]*$", var.ssh_user))
    error_message = "A user name has lower-case letters, digits, _ and -."
  }
}
