# SPDX-License-Identifier: Apache-2.0
terraform {
  required_version = ">= 1.6"

  # The path of the state is given by -backend-config=path=FILE.
  backend "local" {}

  required_providers {
    # Reads LIBVIRT_DEFAULT_URI; without it, qemu:///system.
    libvirt = {
      source  = "dmacvicar/libvirt"
      version = "0.9.7"
    }
  }
}
