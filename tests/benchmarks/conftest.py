# SPDX-License-Identifier: Apache-2.0
"""The tools of the benchmarks, as modules."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
