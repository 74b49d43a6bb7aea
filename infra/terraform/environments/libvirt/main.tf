# SPDX-License-Identifier: Apache-2.0
locals {
  links_of = { for name in keys(var.hosts) : name => sort([for end in local.ends : end.link if end.host == name]) }

  # 52:54:00 is QEMU's prefix; the rest follows from the names, so that a machine keeps its cards and its address.
  digests = {
    for name in keys(var.hosts) : name => {
      for card in concat(["ssh"], local.links_of[name]) : card => md5("${var.name}/${name}/${card}")
    }
  }
  macs = {
    for name, digests in local.digests : name => {
      for card, digest in digests : card => join(":", concat(["52:54:00"], regexall("..", substr(digest, 0, 6))))
    }
  }
  # libvirt would choose the same name for networks that start at once. The limit is 15 characters.
  bridges = {
    for network in concat(["ssh"], keys(var.links)) : network => "lf-${substr(md5("${var.name}/${network}"), 0, 8)}"
  }
  addresses = { for number, name in sort(keys(var.hosts)) : name => cidrhost(var.management_prefix, 10 + number) }
  prefix    = tonumber(split("/", var.management_prefix)[1])

  expiry = var.tags.expires == null ? "no expiry" : "expires ${var.tags.expires}"
  title  = "longfat: study ${var.tags.study}, owner ${var.tags.owner}, ${local.expiry}"
}

# First into the state and last out of it: `longfat lab list` and `sweep` read it.
resource "terraform_data" "lab" {
  input = { environment = "libvirt", tags = var.tags }
}

module "first_boot" {
  source = "../../modules/first_boot"

  ssh_public_keys = var.ssh_public_keys
  ssh_prefixes    = [var.management_prefix]
}

resource "libvirt_network" "management" {
  name       = "${var.name}-ssh"
  autostart  = false
  bridge     = { name = local.bridges["ssh"] }
  forward    = var.management_forward == "none" ? null : { mode = var.management_forward }
  depends_on = [terraform_data.lab]

  ips = [{
    address = cidrhost(var.management_prefix, 1)
    family  = "ipv4"
    prefix  = local.prefix
    dhcp = {
      ranges = [{ start = cidrhost(var.management_prefix, 10), end = cidrhost(var.management_prefix, 30) }]
      hosts = [for name in sort(keys(var.hosts)) : {
        mac = local.macs[name]["ssh"], ip = local.addresses[name], name = name
      }]
    }
  }]
}

# An isolated bridge: no address of the host, no forwarding, no spanning tree, which would delay the start.
resource "libvirt_network" "link" {
  for_each = var.links

  name       = "${var.name}-${each.key}"
  autostart  = false
  bridge     = { name = local.bridges[each.key], stp = "off", delay = "0" }
  mtu        = { size = var.link_mtu_bytes }
  depends_on = [terraform_data.lab]
}

resource "libvirt_volume" "image" {
  name       = "${var.name}-image.qcow2"
  pool       = var.pool
  target     = { format = { type = "qcow2" } }
  create     = { content = { url = var.image_url } }
  depends_on = [terraform_data.lab]

  lifecycle {
    precondition {
      condition = (
        var.image_sha512 == null || try(filesha512(trimprefix(var.image_url, "file://")), "") == var.image_sha512
      )
      error_message = "${var.image_url} is no file here with the stated SHA-512: download it, and give its path."
    }
  }
}

resource "libvirt_volume" "disk" {
  for_each = var.hosts

  name          = "${var.name}-${each.key}.qcow2"
  pool          = var.pool
  capacity      = var.disk_gib * 1024 * 1024 * 1024
  target        = { format = { type = "qcow2" } }
  backing_store = { path = libvirt_volume.image.path, format = { type = "qcow2" } }
}

resource "libvirt_cloudinit_disk" "seed" {
  for_each = var.hosts

  name      = "${var.name}-${each.key}-seed"
  user_data = module.first_boot.user_data
  meta_data = jsonencode({ instance-id = "${var.name}-${each.key}", local-hostname = each.key })
  # Only the card for SSH is configured; runs configure the cards of the links.
  network_config = jsonencode({
    version   = 2
    ethernets = { ssh = { match = { macaddress = local.macs[each.key]["ssh"] }, dhcp4 = true } }
  })
  depends_on = [terraform_data.lab]
}

resource "libvirt_volume" "seed" {
  for_each = var.hosts

  name   = "${var.name}-${each.key}-seed.iso"
  pool   = var.pool
  create = { content = { url = libvirt_cloudinit_disk.seed[each.key].path } }
}

resource "libvirt_domain" "this" {
  for_each = var.hosts

  name        = "${var.name}-${each.key}"
  title       = local.title
  type        = var.domain_type
  memory      = each.value.memory_mib
  memory_unit = "MiB"
  vcpu        = each.value.cpus
  running     = true
  autostart   = false
  os          = { type = "hvm", type_arch = "x86_64", type_machine = "q35" }
  cpu         = var.domain_type == "kvm" ? { mode = "host-passthrough" } : { mode = "maximum" }
  features    = { acpi = true }
  destroy     = { graceful = true }

  devices = {
    consoles = [{ target = { type = "serial", port = 0 } }]
    rngs     = [{ model = "virtio", backend = { random = "/dev/urandom" } }]
    disks = [
      {
        driver = { name = "qemu", type = "qcow2" }
        source = { volume = { pool = var.pool, volume = libvirt_volume.disk[each.key].name } }
        target = { dev = "vda", bus = "virtio" }
      },
      # A virtio disk: cloud kernels, such as Debian's, have no driver for a CD on SATA.
      {
        driver    = { name = "qemu", type = "raw" }
        read_only = true
        source    = { volume = { pool = var.pool, volume = libvirt_volume.seed[each.key].name } }
        target    = { dev = "vdb", bus = "virtio" }
      },
    ]
    interfaces = concat(
      [{
        mac         = { address = local.macs[each.key]["ssh"] }
        model       = { type = "virtio" }
        source      = { network = { network = libvirt_network.management.name } }
        wait_for_ip = { source = "lease", timeout = var.domain_type == "kvm" ? 300 : 1800 }
      }],
      [for link in local.links_of[each.key] : {
        mac         = { address = local.macs[each.key][link] }
        model       = { type = "virtio" }
        source      = { network = { network = libvirt_network.link[link].name } }
        wait_for_ip = null
      }],
    )
  }
}

module "inventory" {
  source = "../../modules/inventory"

  environment = "libvirt"
  tags        = var.tags
  filter      = module.first_boot.filter
  links       = var.links
  hosts = { for name, host in var.hosts : name => {
    role = host.role
    ssh  = { address = local.addresses[name], user = var.ssh_user }
    nics = { for link in local.links_of[name] : link => { mac = local.macs[name][link] } }
    placement = {
      provider     = "libvirt"
      machine_type = "${host.cpus} x ${var.domain_type}, ${host.memory_mib} MiB"
      id           = libvirt_domain.this[name].uuid
    }
  } }
}
