# SPDX-License-Identifier: Apache-2.0
locals {
  tags = { longfat_study = var.tags.study, longfat_owner = var.tags.owner, longfat_expires = var.tags.expires }
}

# First into the state and last out of it: `longfat lab list` and `sweep` read it.
resource "terraform_data" "lab" {
  input = { environment = "aws", tags = var.tags }
}

# Debian's own account; https://wiki.debian.org/Cloud/AmazonEC2Image
data "aws_ami" "debian" {
  most_recent = true
  owners      = ["136693071363"]

  filter {
    name   = "name"
    values = ["debian-12-amd64-*"]
  }
}

resource "aws_key_pair" "this" {
  key_name   = var.name
  public_key = trimspace(var.ssh_public_key)
  tags       = local.tags
  depends_on = [terraform_data.lab]
}

resource "aws_security_group" "ssh" {
  name        = "${var.name}-ssh"
  description = "SSH from stated prefixes"
  tags        = local.tags
  depends_on  = [terraform_data.lab]
}

resource "aws_vpc_security_group_ingress_rule" "ssh" {
  for_each = var.ssh_prefixes

  security_group_id = aws_security_group.ssh.id
  description       = "SSH from ${each.key}"
  ip_protocol       = "tcp"
  from_port         = 22
  to_port           = 22
  cidr_ipv4         = strcontains(each.key, ":") ? null : each.key
  cidr_ipv6         = strcontains(each.key, ":") ? each.key : null
  tags              = local.tags
}

resource "aws_vpc_security_group_egress_rule" "all" {
  security_group_id = aws_security_group.ssh.id
  description       = "Packages"
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
  tags              = local.tags
}

resource "aws_instance" "this" {
  for_each = var.hosts

  ami                         = data.aws_ami.debian.id
  instance_type               = coalesce(each.value.instance_type, var.instance_type)
  key_name                    = aws_key_pair.this.key_name
  vpc_security_group_ids      = [aws_security_group.ssh.id]
  associate_public_ip_address = true
  user_data                   = module.first_boot.user_data
  tags                        = merge(local.tags, { Name = "${var.name}-${each.key}" })
  volume_tags                 = local.tags

  # At the expiry the machine powers off, and a machine that is off is deleted: nothing costs money any more.
  instance_initiated_shutdown_behavior = "terminate"

  root_block_device {
    volume_size = var.disk_gib
    encrypted   = true
  }

  metadata_options {
    http_tokens = "required"
  }

  dynamic "instance_market_options" {
    for_each = var.spot ? ["spot"] : []
    content {
      market_type = instance_market_options.value
    }
  }

  # Either would erase the machine. The role lab_expiry follows a changed expiry, the security group changed prefixes.
  lifecycle {
    ignore_changes = [ami, user_data]
  }
}

module "inventory" {
  source = "../../modules/inventory"

  environment = "aws"
  tags        = var.tags
  filter      = module.first_boot.filter
  links       = {}
  hosts = { for name, host in var.hosts : name => {
    role = host.role
    ssh  = { address = aws_instance.this[name].public_ip, user = "admin" }
    nics = {}
    placement = {
      provider     = "aws"
      location     = aws_instance.this[name].availability_zone
      machine_type = aws_instance.this[name].instance_type
      id           = aws_instance.this[name].id
    }
  } }
}
