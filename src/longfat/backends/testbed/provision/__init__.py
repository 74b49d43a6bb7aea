# SPDX-License-Identifier: Apache-2.0
"""Labs: machines that Terraform creates and Ansible prepares, with a folder for each lab. Executes no run."""
