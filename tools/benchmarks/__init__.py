# SPDX-License-Identifier: Apache-2.0
"""Figures of slipway, each beside that of a baseline in the same run. main.py is where to begin."""
