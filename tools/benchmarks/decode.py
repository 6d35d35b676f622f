# SPDX-License-Identifier: Apache-2.0
"""Text into typed views, and as a baseline into jansson's DOM: decode.c does it."""

import re
import subprocess

from benchmarks.figures import Figure
from benchmarks.stand import BENCH_DECODE, BUILD, TOP

SUMMARY = "decoding a Deployment and a review, against jansson"
DATA = TOP / "tests" / "data" / "kube"


def measure(bench):
    text = subprocess.run([BUILD / BENCH_DECODE, DATA / "deployment-applied.json", DATA / "review-update.json"],
                          check=True, capture_output=True, text=True).stdout
    found = {name: [float(rate) for rate in re.findall(r"^ +%s +([0-9.]+) MB/s" % name, text, re.M)] for name in ("slipway", "jansson")}
    assert [len(rates) for rates in found.values()] == [2, 2], text
    (deployment, review), (dom, review_dom) = found["slipway"], found["jansson"]
    how = "bench_decode: a Deployment of %d bytes; processor time, median of 9 rounds" % (DATA / "deployment-applied.json").stat().st_size
    yield Figure("decode_mb_per_s", deployment, how + ". A review: %.0f MB/s, jansson %.0f" % (review, review_dom),
                 "jansson %.0f MB/s: %.1f times" % (dom, deployment / dom))
    yield Figure("decode_jansson_mb_per_s", dom, how)
