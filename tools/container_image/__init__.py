# SPDX-License-Identifier: Apache-2.0
"""What tools/image is made of."""
