# SPDX-License-Identifier: Apache-2.0
terraform {
  required_version = ">= 1.6"

  # The path of the state is given by -backend-config=path=FILE.
  backend "local" {}

  required_providers {
    # Reads the environment or clouds.yaml: OS_CLOUD, or OS_AUTH_URL with an application credential.
    openstack = {
      source  = "terraform-provider-openstack/openstack"
      version = "3.4.0"
    }
  }
}
