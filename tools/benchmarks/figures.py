# SPDX-License-Identifier: Apache-2.0
"""What is measured, which target it has, and how the results are shown."""

import json
import shutil
import statistics
import textwrap

# Key: (what it is, target, unit, digits). The order is that of the table.
FIGURES = {
    "rss_idle_mib": ("resident memory, idle, three modules", "<= 8 MiB", "MiB", 1),
    "rss_10k_mib": ("resident memory, 10 000 Deployments in 500 groups", "<= 32 MiB", "MiB", 1),
    "ready_10k_s": ("from start to ready with them", "<= 1 s", "s", 2),
    "handover_own_median_ms": ("hand-over, our own time, median", "<= 0.5 ms", "ms", 3),
    "handover_own_p99_ms": ("hand-over, our own time, p99", "<= 2 ms", "ms", 3),
    "handover_sim_median_ms": ("hand-over as a whole, slipway-sim", "<= 5 ms", "ms", 2),
    "handover_real_median_ms": ("hand-over as a whole, real control plane", "<= 50 ms", "ms", 2),
    "handover_poll_median_ms": ("the same by a poller, every 10 s", "none: a baseline", "ms", 0),
    "admission_per_s": ("admission over TLS, one core", ">= 20 000/s", "/s", 0),
    "admission_p99_ms": ("admission at 5 000/s, p99", "<= 2 ms", "ms", 2),
    "decode_mb_per_s": ("decoding into typed views", ">= 400 MB/s", "MB/s", 0),
    "decode_jansson_mb_per_s": ("the same into jansson's DOM", "none: a baseline", "MB/s", 0),
    "growth_size": ("work per change, 10 000 Deployments to 100, one namespace", "<= n log n: 200 times", "times", 2),
    "growth_namespaces": ("work per change, 1 000 namespaces to 1", "1: independent", "times", 2),
    "idle_wakeups_per_s": ("idle: wake-ups of the process", "only timers that are due", "/s", 2),
    "takeover_stop_ms": ("another replica leads after SIGTERM, median", "< 1 s", "ms", 0),
    "takeover_kill_s": ("the same after SIGKILL, median", "<= 15 s: the lease", "s", 1),
    "renewal_per_s": ("admission while certificates are renewed", "as without", "/s", 0),
    "renewal_failed": ("reviews that failed meanwhile", "0", "", 0),
    "rss_reload_0_mib": ("resident memory before reloads", "none", "MiB", 1),
    "rss_reload_100_mib": ("the same after 100 of them", "as before", "MiB", 1),
    "rbac_verbs": ("RBAC: verbs on resources", "none", "", 0),
    "stepping_hold_sim_median_ms": ("from a step's last Pod to the pause on the wire, median", "none", "ms", 3),
    "stepping_hold_sim_p99_ms": ("the same, p99", "none", "ms", 3),
    "stepping_hold_real_median_ms": ("the same, real control plane", "none", "ms", 2),
    "stepping_overshoot_max_pods": ("Pods beyond the stop when the hold stands, most", "one batch: surge plus unavailable", "", 0),
    "stepping_1000_rss_mib": ("resident memory, 1 000 stepped rollouts with 3 checks each", "none", "MiB", 1),
    "stepping_1000_cpu_percent": ("processor, the same, of one core", "none", "%", 2),
    "image_mib": ("image, compressed", "<= 10 MiB", "MiB", 1),
    "sim_steps_per_s": ("simulation of whole slipway, steps", "none", "/s", 0),
}


class Figure:
    """value None: not measured, and `how` says why."""

    def __init__(self, key, value, how, baseline=""):
        self.key, self.value, self.how, self.baseline = key, value, how, baseline

    def text(self):
        if self.value is None:
            return "-"
        _, _, unit, digits = FIGURES[self.key]
        return ("{:,.%df} %s" % (digits, unit)).format(self.value).replace(",", " ").replace(" /", "/").strip()


def percentile(values, part):
    """The nearest rank; values need not be sorted."""
    found = sorted(values)
    return found[min(len(found) - 1, int(part * len(found)))]


def median(values):
    return statistics.median(values)


def spread(values, digits=2):
    """Median and range of several runs, for the column that says how."""
    return "median of %d runs, %.*f to %.*f" % (len(values), digits, min(values), digits, max(values))


def as_json(figures, is_quick):
    """Every key, null where it was not measured; "quick" is 1 after a quick run."""
    found = {figure.key: figure.value for figure in figures}
    return json.dumps({"quick": int(is_quick), **{key: found.get(key) for key in FIGURES}}, indent=2)


def as_table(figures):
    heads = ("what", "target", "figure", "baseline", "how obtained")
    order = list(FIGURES)
    rows = [(FIGURES[figure.key][0], FIGURES[figure.key][1], figure.text(), figure.baseline, figure.how)
            for figure in sorted(figures, key=lambda figure: order.index(figure.key))]
    widths = [0] * 5
    limits = (30, 16, 14, 30, max(30, shutil.get_terminal_size((150, 24)).columns - 102))
    for index, limit in enumerate(limits):
        widths[index] = min(limit, max(len(row[index]) for row in [heads, *rows]))
    lines = [" | ".join(head.ljust(width) for head, width in zip(heads, widths)).rstrip(),
             "-+-".join("-" * width for width in widths)]
    for row in rows:
        cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths)]
        for line in range(max(map(len, cells))):
            lines.append(" | ".join((cell[line] if line < len(cell) else "").ljust(width)
                                    for cell, width in zip(cells, widths)).rstrip())
    return "\n".join(lines)
