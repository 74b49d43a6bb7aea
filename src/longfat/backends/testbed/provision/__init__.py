# SPDX-License-Identifier: Apache-2.0
"""Labs: machines that Terraform makes and Ansible prepares, with a folder for each lab. Runs nothing on them."""
