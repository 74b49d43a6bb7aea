# SPDX-License-Identifier: Apache-2.0
# First into the state and last out of it: `longfat lab list` and `sweep` read it.
resource "terraform_data" "lab" {
  input = { environment = "existing", tags = var.tags }
}

module "inventory" {
  source = "../../modules/inventory"

  environment = "existing"
  tags        = var.tags
  links       = var.links
  hosts = { for name, host in var.hosts : name => {
    role      = host.role
    ssh       = host.ssh
    nics      = host.nics
    placement = { provider = "existing", location = host.location, machine_type = host.machine_type }
  } }
}
