# SPDX-License-Identifier: Apache-2.0
locals {
  data_interfaces = { for name, host in var.hosts : name => coalesce(host.data_interface, var.data_interface) }

  # A tag is a name without a value; the exact text is its description.
  tags = { for key, value in var.tags : key => {
    name        = "longfat-${key}-${lower(replace(value, "/[^A-Za-z0-9]+/", "-"))}"
    description = "${key}=${value}"
  } }

  # Each link is a VLAN on one card: a machine with two links has one card for both.
  macs = { for name in keys(var.hosts) : name => one([
    for card in latitudesh_server.this[name].interfaces : card.mac_address if card.name == local.data_interfaces[name]
  ]) }
}

# First into the state and last out of it: `longfat lab list` and `sweep` read it.
resource "terraform_data" "lab" {
  input = { environment = "latitude", tags = var.tags }
}

resource "latitudesh_tag" "this" {
  for_each = local.tags

  name        = each.value.name
  description = each.value.description
  depends_on  = [terraform_data.lab]
}

resource "latitudesh_ssh_key" "this" {
  name       = var.name
  public_key = trimspace(var.ssh_public_key)
  tags       = [for tag in latitudesh_tag.this : tag.id]
}

resource "latitudesh_user_data" "this" {
  description = var.name
  content     = base64encode(module.first_boot.user_data)
  depends_on  = [terraform_data.lab]
}

resource "latitudesh_server" "this" {
  for_each = var.hosts

  hostname         = "${var.name}-${each.key}"
  project          = var.project
  site             = var.site
  plan             = coalesce(each.value.plan, var.plan)
  operating_system = var.operating_system
  billing          = "hourly" # the provider's default is a month, paid at once
  ssh_keys         = [latitudesh_ssh_key.this.id]
  user_data        = latitudesh_user_data.this.id
  tags             = [for tag in latitudesh_tag.this : tag.id]
  allow_reinstall  = false # a changed system or key is an error of the provider, not an erased machine
  timeouts         = { create = "60m" }

  lifecycle {
    postcondition {
      condition = length([for card in self.interfaces : card if card.name == local.data_interfaces[each.key]]) == 1
      error_message = join(" ", [
        "${each.key} has no card named ${local.data_interfaces[each.key]};",
        "it has ${jsonencode(self.interfaces[*].name)}.",
      ])
    }
  }
}

# The provider adds a rule for SSH from anywhere to each firewall, which Terraform cannot remove. So the machine's own
# filter decides about SSH; this firewall closes the rest before a packet reaches the machine.
resource "latitudesh_firewall" "this" {
  name       = var.name
  project    = var.project
  depends_on = [terraform_data.lab]

  dynamic "rules" {
    for_each = sort(var.ssh_prefixes)
    content {
      from     = rules.value
      to       = "ANY"
      port     = "22"
      protocol = "tcp"
    }
  }
}

resource "latitudesh_firewall_assignment" "this" {
  for_each = var.hosts

  firewall_id = latitudesh_firewall.this.id
  server_id   = latitudesh_server.this[each.key].id
}

resource "latitudesh_virtual_network" "link" {
  for_each = var.links

  description = "${var.name}-${each.key}"
  project     = var.project
  site        = var.site
  tags        = [for tag in latitudesh_tag.this : tag.id]
}

resource "latitudesh_vlan_assignment" "link" {
  for_each = local.ends

  server_id          = latitudesh_server.this[each.value.host].id
  virtual_network_id = latitudesh_virtual_network.link[each.value.link].id

  timeouts {
    create = "10m"
  }
}

module "inventory" {
  source = "../../modules/inventory"

  environment = "latitude"
  tags        = var.tags
  filter      = module.first_boot.filter
  links       = var.links
  hosts = { for name, host in var.hosts : name => {
    role = host.role
    ssh  = { address = latitudesh_server.this[name].primary_ipv4, user = var.ssh_user }
    nics = { for end in local.ends : end.link => {
      mac  = local.macs[name]
      vlan = latitudesh_vlan_assignment.link["${end.link}/${name}"].vid
    } if end.host == name }
    placement = {
      provider     = "latitude"
      location     = latitudesh_server.this[name].region
      machine_type = coalesce(host.plan, var.plan)
      id           = latitudesh_server.this[name].id
    }
  } }
}
