# SPDX-License-Identifier: Apache-2.0
locals {
  prefixes4 = sort([for prefix in var.ssh_prefixes : prefix if !strcontains(prefix, ":")])
  prefixes6 = sort([for prefix in var.ssh_prefixes : prefix if strcontains(prefix, ":")])

  # Two address families instead of inet, which needs a kernel with IPv6.
  filter = {
    "/etc/nftables.conf" = templatefile("${path.module}/ip.nft.tftpl", {
      ssh4       = join(", ", local.prefixes4)
      data_plane = join(", ", sort(var.data_plane_prefixes))
    })
    "/etc/nftables-ip6.conf" = templatefile("${path.module}/ip6.nft.tftpl", {
      ssh6 = join(", ", local.prefixes6)
    })
    "/etc/systemd/system/nftables.service.d/longfat.conf" = file("${path.module}/nftables.service.conf")
  }

  # The machine ends the lab by itself, also if it was off at that time. The role lab_expiry writes the same files.
  expiry = var.expires == null ? {} : {
    "/etc/systemd/system/longfat-expiry.service" = file("${path.module}/longfat-expiry.service")
    "/etc/systemd/system/longfat-expiry.timer" = templatefile("${path.module}/longfat-expiry.timer.tftpl", {
      expires = formatdate("YYYY-MM-DD hh:mm:ss", var.expires)
    })
  }

  # JSON is YAML, and needs no quoting by hand.
  cloud_config = {
    ssh_authorized_keys = sort(var.ssh_public_keys)
    ssh_pwauth          = false
    packages            = ["nftables"]
    write_files = [for path, content in merge(local.filter, local.expiry) : {
      path        = path
      owner       = "root:root"
      permissions = "0644"
      content     = content
    }]
    runcmd = concat([
      ["systemctl", "daemon-reload"],
      ["systemctl", "enable", "nftables.service"],
      ["systemctl", "restart", "nftables.service"],
    ], var.expires == null ? [] : [["systemctl", "enable", "--now", "longfat-expiry.timer"]])
  }
}
