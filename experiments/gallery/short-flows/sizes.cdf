# SPDX-License-Identifier: Apache-2.0
# Sizes of flows, many of them short and few of them long: bytes, and the percentage that is no larger.
1000 10
3000 30
10000 60
30000 80
100000 90
300000 96
1000000 100
