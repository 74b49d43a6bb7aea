# SPDX-License-Identifier: Apache-2.0
variable "folder" {
  description = "Folder for disks, sockets, PID files and consoles of the machines; made and removed with them."
  type        = string

  validation {
    condition     = can(regex("^/[A-Za-z0-9._/-]+[A-Za-z0-9._-]$", var.folder))
    error_message = "The folder is an absolute path of letters, digits and . _ - only, without a slash at its end."
  }

  validation {
    # A socket's whole path has at most 107 bytes (unix(7)); names of link and host take up to 32 each.
    condition     = length(var.folder) <= 70
    error_message = "The folder's path is longer than 70 bytes, which leaves no room for the names of sockets."
  }
}

variable "hosts" {
  description = "The machines by name. ssh_port is a free port of this host's loopback address."
  type = map(object({
    role       = string
    ssh_port   = number
    cpus       = optional(number, 1)
    memory_mib = optional(number, 512)
  }))
  default = {
    receiver = { role = "receiver", ssh_port = 22203 }
    router   = { role = "router", ssh_port = 22202 }
    sender   = { role = "sender", ssh_port = 22201 }
  }

  validation {
    condition     = alltrue([for host in var.hosts : host.ssh_port >= 1024 && host.ssh_port <= 65535])
    error_message = "A port for SSH is a number from 1024 to 65535."
  }

  validation {
    condition = alltrue([for host in var.hosts : alltrue([
      host.cpus >= 1, host.cpus <= 64, host.memory_mib >= 64, floor(host.memory_mib) == host.memory_mib
    ])])
    error_message = "A machine has 1 to 64 processors and at least 64 MiB."
  }
}

variable "image" {
  description = "Raw disk image, copied for each machine. A new image needs a new path."
  type        = string

  validation {
    condition     = can(regex("^/[A-Za-z0-9._/-]+$", var.image))
    error_message = "The image is an absolute path of letters, digits and . _ - only."
  }
}

# A change restarts the machines on their present disks.
variable "boot" {
  description = "Kernel, initial file system and command line for QEMU; null boots from the disk."
  type = object({
    kernel       = string
    initrd       = optional(string)
    command_line = optional(string, "root=/dev/vda rw console=ttyS0 panic=5")
  })
  default = null

  validation {
    condition = var.boot == null ? true : alltrue([
      for path in compact([var.boot.kernel, var.boot.initrd]) : can(regex("^/[A-Za-z0-9._/-]+$", path))
    ])
    error_message = "Kernel and initial file system are absolute paths of letters, digits and . _ - only."
  }

  validation {
    condition     = var.boot == null ? true : !strcontains(var.boot.command_line, "\n")
    error_message = "The kernel's command line is one line."
  }
}

# The machine finds it on its second disk, longfat-seed.
variable "ssh_public_key" {
  description = "Public key with access, a line of authorized_keys."
  type        = string

  validation {
    condition = can(regex(
      "^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp256) [A-Za-z0-9+/=]+( [^\n]*)?$", trimspace(var.ssh_public_key)
    ))
    error_message = "The key is one line such as the content of id_ed25519.pub."
  }
}

variable "ssh_user" {
  description = "User who logs in."
  type        = string
  default     = "root"

  validation {
    condition     = can(regex("^[a-z_][a-z0-9_-]*$", var.ssh_user))
    error_message = "A user name has lower-case letters, digits, _ and -."
  }
}

variable "qemu" {
  description = "The program: a name in PATH, or a path."
  type        = string
  default     = "qemu-system-x86_64"

  validation {
    condition     = can(regex("^[A-Za-z0-9._/-]+$", var.qemu))
    error_message = "The program is a name or path of letters, digits and . _ - only."
  }
}

variable "accelerator" {
  description = "tcg needs nothing; kvm is many times faster where it works."
  type        = string
  default     = "tcg"

  validation {
    condition     = contains(["tcg", "kvm"], var.accelerator)
    error_message = "The accelerator is tcg or kvm."
  }
}

variable "isolated" {
  description = "Whether the machines reach only this host. A worker must fetch packages."
  type        = bool
  default     = true
}

variable "boot_timeout_s" {
  description = "Longest wait for SSH of each machine in seconds; 0 does not wait."
  type        = number
  default     = 300

  validation {
    condition = alltrue([
      var.boot_timeout_s >= 0, var.boot_timeout_s <= 3600, floor(var.boot_timeout_s) == var.boot_timeout_s
    ])
    error_message = "The time is a whole number of seconds up to 3600."
  }
}
