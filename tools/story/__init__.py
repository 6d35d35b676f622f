# SPDX-License-Identifier: Apache-2.0
"""The stories that ./tools/run plays."""
