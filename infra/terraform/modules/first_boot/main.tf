# SPDX-License-Identifier: Apache-2.0
locals {
  prefixes4 = sort([for prefix in var.ssh_prefixes : prefix if !strcontains(prefix, ":")])
  prefixes6 = sort([for prefix in var.ssh_prefixes : prefix if strcontains(prefix, ":")])

  ruleset = templatefile("${path.module}/nftables.conf.tftpl", {
    ssh4       = join(", ", local.prefixes4)
    ssh6       = join(", ", local.prefixes6)
    data_plane = join(", ", sort(var.data_plane_prefixes))
  })

  # YAML takes JSON as it is, so nothing needs quoting by hand.
  cloud_config = {
    ssh_authorized_keys = sort(var.ssh_public_keys)
    ssh_pwauth          = false
    packages            = ["nftables"]
    write_files = [{
      path        = "/etc/nftables.conf"
      owner       = "root:root"
      permissions = "0644"
      content     = local.ruleset
    }]
    runcmd = [["systemctl", "enable", "nftables.service"], ["systemctl", "restart", "nftables.service"]]
  }
}
