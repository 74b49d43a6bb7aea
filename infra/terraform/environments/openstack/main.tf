# SPDX-License-Identifier: Apache-2.0
locals {
  image_is_id = can(regex("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", var.image))
  reservations = {
    for name, host in var.hosts : name => host.reservation_id == null ? var.reservation_id : host.reservation_id
  }

  # Neutron's tags have no keys; Nova's metadata have.
  tags     = ["longfat", "study=${var.tags.study}", "owner=${var.tags.owner}", "expires=${var.tags.expires}"]
  metadata = { longfat_study = var.tags.study, longfat_owner = var.tags.owner, longfat_expires = var.tags.expires }
}

# First into the state and last out of it: `longfat lab list` and `sweep` read it.
resource "terraform_data" "lab" {
  input = { environment = "openstack", tags = var.tags }
}

data "openstack_networking_network_v2" "management" {
  name = var.management_network
}

resource "openstack_compute_keypair_v2" "this" {
  name       = var.name
  public_key = trimspace(var.ssh_public_key)
  depends_on = [terraform_data.lab]
}

# Bare metal may ignore security groups of the switch or hypervisor; the machine's own filter has the same rules.
resource "openstack_networking_secgroup_v2" "ssh" {
  name        = "${var.name}-ssh"
  description = "SSH from stated prefixes"
  tags        = local.tags
  depends_on  = [terraform_data.lab]
}

resource "openstack_networking_secgroup_rule_v2" "ssh" {
  for_each = var.ssh_prefixes

  description       = "SSH from ${each.key}"
  direction         = "ingress"
  ethertype         = strcontains(each.key, ":") ? "IPv6" : "IPv4"
  protocol          = "tcp"
  port_range_min    = 22
  port_range_max    = 22
  remote_ip_prefix  = each.key
  security_group_id = openstack_networking_secgroup_v2.ssh.id
}

resource "openstack_networking_port_v2" "management" {
  for_each = var.hosts

  name               = "${var.name}-${each.key}-ssh"
  network_id         = data.openstack_networking_network_v2.management.id
  security_group_ids = [openstack_networking_secgroup_v2.ssh.id]
  tags               = local.tags
}

resource "openstack_networking_network_v2" "link" {
  for_each = var.links

  name                  = "${var.name}-${each.key}"
  port_security_enabled = false
  tags                  = local.tags
  depends_on            = [terraform_data.lab]

  # Separate keys, which Chameleon permits to users; only an administrator may send a list of segments.
  value_specs = var.link_physical_network == null ? null : {
    "provider:network_type"     = "vlan"
    "provider:physical_network" = var.link_physical_network
  }
}

# Nova requires ports with addresses. These, from RFC 2544, are never configured: runs have their own.
resource "openstack_networking_subnet_v2" "link" {
  for_each = { for number, name in sort(keys(var.links)) : name => cidrsubnet("198.18.0.0/15", 9, number) }

  name        = "${var.name}-${each.key}"
  network_id  = openstack_networking_network_v2.link[each.key].id
  cidr        = each.value
  ip_version  = 4
  no_gateway  = true
  enable_dhcp = false
  tags        = local.tags
}

resource "openstack_networking_port_v2" "link" {
  for_each = local.ends

  name                  = "${var.name}-${each.value.host}-${each.value.link}"
  network_id            = openstack_networking_network_v2.link[each.value.link].id
  port_security_enabled = false
  no_security_groups    = true
  tags                  = local.tags

  fixed_ip {
    subnet_id = openstack_networking_subnet_v2.link[each.value.link].id
  }
}

resource "openstack_compute_instance_v2" "this" {
  for_each = var.hosts

  name        = "${var.name}-${each.key}"
  image_name  = local.image_is_id ? null : var.image
  image_id    = local.image_is_id ? var.image : null
  flavor_name = coalesce(each.value.flavor, var.flavor)
  key_pair    = openstack_compute_keypair_v2.this.name
  user_data   = module.first_boot.user_data
  metadata    = local.metadata
  tags        = [for tag in local.tags : substr(tag, 0, 60)] # all that Nova takes of one; the metadata have the whole

  dynamic "scheduler_hints" {
    for_each = local.reservations[each.key] == null ? [] : [local.reservations[each.key]]
    content {
      additional_properties = { reservation = scheduler_hints.value }
    }
  }

  network {
    port           = openstack_networking_port_v2.management[each.key].id
    access_network = true
  }

  dynamic "network" {
    for_each = sort([for end in local.ends : end.link if end.host == each.key])
    content {
      port = openstack_networking_port_v2.link["${network.value}/${each.key}"].id
    }
  }

  # Deployment of a bare-metal machine, with its firmware's checks.
  timeouts {
    create = "60m"
  }

  # Either would erase the machine: Nova creates it again for other user data, and rebuilds it in place for another name
  # of its image. The packet filter follows changed prefixes by Ansible.
  lifecycle {
    ignore_changes = [user_data, image_name, image_id]
  }
}

resource "openstack_networking_floatingip_v2" "this" {
  for_each = var.floating_ip_pool == null ? {} : var.hosts

  pool        = var.floating_ip_pool
  description = "${var.name}-${each.key}"
  tags        = local.tags
  depends_on  = [terraform_data.lab]
}

resource "openstack_networking_floatingip_associate_v2" "this" {
  for_each = openstack_networking_floatingip_v2.this

  floating_ip = each.value.address
  port_id     = openstack_networking_port_v2.management[each.key].id
  depends_on  = [openstack_compute_instance_v2.this]
}

module "inventory" {
  source = "../../modules/inventory"

  environment = "openstack"
  tags        = var.tags
  filter      = module.first_boot.filter
  links       = var.links
  hosts = { for name, host in var.hosts : name => {
    role = host.role
    ssh = {
      address = (
        var.floating_ip_pool == null
        ? openstack_compute_instance_v2.this[name].access_ip_v4
        : openstack_networking_floatingip_associate_v2.this[name].floating_ip
      )
      user = var.ssh_user
    }
    # From the machine: the ports of bare metal get the addresses of its cards only at the deployment, and the state
    # has the ports from before.
    nics = { for end in local.ends : end.link => {
      mac = coalesce(
        one([for card in openstack_compute_instance_v2.this[name].network : card.mac
        if card.port == openstack_networking_port_v2.link["${end.link}/${name}"].id]),
        openstack_networking_port_v2.link["${end.link}/${name}"].mac_address,
      )
    } if end.host == name }
    placement = {
      provider     = "openstack"
      location     = openstack_compute_instance_v2.this[name].availability_zone
      machine_type = coalesce(host.flavor, var.flavor)
      id           = openstack_compute_instance_v2.this[name].id
    }
  } }
}
