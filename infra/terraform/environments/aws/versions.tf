# SPDX-License-Identifier: Apache-2.0
terraform {
  required_version = ">= 1.6"

  # The path of the state is given by -backend-config=path=FILE.
  backend "local" {}

  required_providers {
    # Reads the environment: AWS_REGION, and AWS_PROFILE or AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY.
    aws = {
      source  = "hashicorp/aws"
      version = "6.0.0"
    }
  }
}
