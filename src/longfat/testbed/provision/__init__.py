# SPDX-License-Identifier: Apache-2.0
"""Labs: machines that Terraform makes and Ansible prepares, a folder for each lab. The code on them is not here."""
