# SPDX-License-Identifier: Apache-2.0
"""What the scenarios are written with: a cluster, slipway processes, workloads, and an observer.

A scenario says what happens and what must be true; it knows no address, no port and no path, so
that the same scenario can run on another kind of cluster (see cluster.py).
"""
