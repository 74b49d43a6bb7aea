# SPDX-License-Identifier: Apache-2.0
terraform {
  required_version = ">= 1.6"

  # Where the state is says who initialises: -backend-config=path=FILE.
  backend "local" {}
}
