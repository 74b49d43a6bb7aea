# SPDX-License-Identifier: Apache-2.0
terraform {
  required_version = ">= 1.6"
}
