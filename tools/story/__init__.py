# SPDX-License-Identifier: Apache-2.0
"""The story that ./tools/run plays: three Deployments change at once, and roll one after the other."""
