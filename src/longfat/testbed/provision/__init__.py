# SPDX-License-Identifier: Apache-2.0
"""Labs: machines that Terraform makes and Ansible prepares, a folder for each lab. What runs on them is not here."""
