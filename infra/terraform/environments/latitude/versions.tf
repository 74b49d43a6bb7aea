# SPDX-License-Identifier: Apache-2.0
terraform {
  required_version = ">= 1.6"

  # The path of the state is given by -backend-config=path=FILE.
  backend "local" {}

  required_providers {
    # Reads LATITUDESH_AUTH_TOKEN.
    latitudesh = {
      source  = "latitudesh/latitudesh"
      version = "4.0.0"
    }
  }
}
