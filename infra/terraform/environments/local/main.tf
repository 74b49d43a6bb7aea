# SPDX-License-Identifier: Apache-2.0
locals {
  ends_of = { for name in keys(var.hosts) : name => { for end in local.ends : end.link => end if end.host == name } }

  # 52:54:00 is QEMU's prefix; the rest follows from the names, so that a machine keeps its cards.
  digests = {
    for name in keys(var.hosts) : name => {
      for card in concat(["ssh"], keys(local.ends_of[name])) : card => md5("${name}/${card}")
    }
  }
  macs = {
    for name, digests in local.digests : name => {
      for card, digest in digests : card => join(":", concat(["52:54:00"], regexall("..", substr(digest, 0, 6))))
    }
  }

  files = { for name in keys(var.hosts) : name => "${var.folder}/${name}" }

  # A machine is the process with this machine's PID file in its command line. A dead machine gets a new mark, which
  # replaces its resource; a running machine keeps the mark from its start.
  running = {
    for name, file in local.files : name =>
    try(strcontains(file("/proc/${trimspace(file("${file}.pid"))}/cmdline"), "${file}.pid"), false)
  }
  marks = {
    for name, file in local.files : name => local.running[name] ? try(trimspace(file("${file}.mark")), "none") : uuid()
  }

  boot = var.boot == null ? [] : concat(
    ["-kernel", var.boot.kernel, "-append", var.boot.command_line],
    var.boot.initrd == null ? [] : ["-initrd", var.boot.initrd],
  )

  # The network for SSH reaches only this host through the forwarded port. Its addresses are outside 10.0.0.0/16, which
  # the runs assign. Datagram sockets outlive a restart of either end.
  commands = {
    for name, host in var.hosts : name => concat(
      ["-name", name, "-accel", var.accelerator, "-cpu", var.accelerator == "kvm" ? "host" : "max", "-machine", "q35"],
      ["-smp", tostring(host.cpus), "-m", tostring(host.memory_mib)],
      ["-nodefaults", "-no-user-config", "-display", "none", "-device", "virtio-rng-pci"],
      ["-chardev", "file,id=console,path=${local.files[name]}.console,append=on", "-serial", "chardev:console"],
      local.boot,
      ["-drive", "file=${local.files[name]}.raw,format=raw,if=none,id=root", "-device", "virtio-blk-pci,drive=root"],
      ["-drive", "file=${local.files[name]}.seed,format=raw,if=none,id=seed,readonly=on"],
      ["-device", "virtio-blk-pci,drive=seed,serial=longfat-seed"],
      ["-netdev", "user,id=ssh,restrict=${var.isolated ? "on" : "off"},ipv6=off,net=192.168.127.0/24,hostfwd=tcp:127.0.0.1:${host.ssh_port}-:22"],
      ["-device", "virtio-net-pci,netdev=ssh,mac=${local.macs[name]["ssh"]}"],
      flatten([for link, end in local.ends_of[name] : [
        "-netdev", join(",", [
          "dgram,id=${link}",
          "local.type=unix,local.path=${var.folder}/${link}@${name}",
          "remote.type=unix,remote.path=${var.folder}/${link}@${end.peer}",
        ]),
        "-device", "virtio-net-pci,netdev=${link},mac=${local.macs[name][link]}",
      ]]),
    )
  }
}

# First into the state and last out of it: `longfat lab list` and `sweep` read it.
resource "terraform_data" "lab" {
  input = { environment = "local", tags = var.tags }
}

resource "terraform_data" "folder" {
  input            = var.folder
  triggers_replace = var.folder
  depends_on       = [terraform_data.lab]

  provisioner "local-exec" {
    command = "mkdir -p -m 700 '${self.input}'"
  }

  provisioner "local-exec" {
    when    = destroy
    command = "if [ -d '${self.input}' ]; then rmdir '${self.input}'; fi"
  }
}

# Host key and seed of the machine, made here so that the key is known before the first connection.
resource "terraform_data" "identity" {
  for_each = var.hosts

  input            = { file = local.files[each.key] }
  triggers_replace = [terraform_data.folder.id, each.key, trimspace(var.ssh_public_key), var.isolated]

  provisioner "local-exec" {
    command = "'${path.module}/machine' identify '${self.input.file}'"
    environment = {
      AUTHORIZED_KEY = trimspace(var.ssh_public_key)
      HOST_NAME      = each.key
      RESOLVER       = var.isolated ? "" : "192.168.127.3" # QEMU's, in the network for SSH
    }
  }

  provisioner "local-exec" {
    when    = destroy
    command = "'${path.module}/machine' forget '${self.input.file}'"
  }
}

resource "terraform_data" "disk" {
  for_each = var.hosts

  input            = { file = local.files[each.key] }
  triggers_replace = [terraform_data.folder.id, each.key, var.image]

  provisioner "local-exec" {
    command     = "'${path.module}/machine' copy '${self.input.file}'"
    environment = { IMAGE = var.image }
  }

  provisioner "local-exec" {
    when    = destroy
    command = "rm -f '${self.input.file}.raw'"
  }
}

resource "terraform_data" "machine" {
  for_each = var.hosts

  input = { file = local.files[each.key] }
  triggers_replace = {
    mark     = local.marks[each.key]
    command  = concat([var.qemu], local.commands[each.key])
    disk     = terraform_data.disk[each.key].id
    identity = terraform_data.identity[each.key].id
  }

  provisioner "local-exec" {
    command = "'${path.module}/machine' start '${self.input.file}'"
    environment = {
      QEMU      = var.qemu
      ARGUMENTS = join("\n", local.commands[each.key])
      MARK      = local.marks[each.key]
    }
  }

  provisioner "local-exec" {
    when    = destroy
    command = "'${path.module}/machine' stop '${self.input.file}'"
  }
}

# A slow machine stays, with its console: the next apply repeats only this wait.
resource "terraform_data" "ready" {
  for_each = var.hosts

  triggers_replace = terraform_data.machine[each.key].id

  provisioner "local-exec" {
    command = "'${path.module}/machine' wait '${local.files[each.key]}' ${each.value.ssh_port} ${var.boot_timeout_s}"
  }
}

module "inventory" {
  source = "../../modules/inventory"

  environment = "local"
  tags        = var.tags
  links       = var.links
  hosts = { for name, host in var.hosts : name => {
    role = host.role
    ssh = {
      address = "127.0.0.1"
      port    = host.ssh_port
      user    = var.ssh_user
      # Known after the identity is made: the path depends on it.
      host_key = try(
        join(" ", slice(split(" ", file("${terraform_data.identity[name].output.file}.host_key.pub")), 0, 2)), null
      )
    }
    nics = { for link in keys(local.ends_of[name]) : link => { mac = local.macs[name][link] } }
    placement = {
      provider     = "qemu"
      machine_type = "${host.cpus} x ${var.accelerator}, ${host.memory_mib} MiB"
      id           = local.files[name]
    }
  } }
}
