# SPDX-License-Identifier: Apache-2.0
"""Builds slipway and runs its tests; installs what is missing first.

  ./tools/test                 everything, in the order below
  ./tools/test unit e2e        only these steps (and what they need)
  ./tools/test --fuzz [SEC]    the fuzz targets, 60 s each unless said otherwise
  ./tools/test --list          the steps

A step prints one line when it is done. What it said in full is in build/test-logs/STEP.log; the end
of that is shown where the step fails. The exit status is 0 only if every step passed.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree

TOP = pathlib.Path(__file__).resolve().parent.parent
LOGS = TOP / "build" / "test-logs"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "slipway"
PYTHON = "/usr/bin/python3"  # Debian's, which has pytest; another may come first on the PATH


class Failed(Exception):
    """What to show is in the log already."""


class Count:
    def __init__(self, passed=0, failed=0, skipped=0, repeated=0):
        self.passed, self.failed, self.skipped, self.repeated = passed, failed, skipped, repeated

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.repeated += other.repeated

    def __str__(self):
        text = "%d passed, %d failed" % (self.passed, self.failed)
        return text + (", %d skipped" % self.skipped if self.skipped else "")


# ---- running commands ----

class Log:
    def __init__(self, step):
        LOGS.mkdir(parents=True, exist_ok=True)
        self.path = LOGS / (step + ".log")
        self.file = open(self.path, "w")

    def run(self, *argv, env=None, allow_failure=False):
        self.file.write("$ %s\n" % " ".join(map(str, argv)))
        self.file.flush()
        code = subprocess.call([str(arg) for arg in argv], cwd=TOP, stdin=subprocess.DEVNULL, stdout=self.file,
                               stderr=subprocess.STDOUT, env=dict(os.environ, **(env or {})))
        if code and not allow_failure:
            raise Failed("%s ended with %d" % (argv[0], code))
        return code

    def tail(self, lines=60):
        self.file.flush()
        return "\n".join(self.path.read_text(errors="replace").splitlines()[-lines:])


def has_tests(folder):
    """False where tools/run has configured it, before what tests need was installed."""
    options = subprocess.run(["meson", "introspect", "--buildoptions", str(TOP / folder)], check=True, stdout=subprocess.PIPE).stdout
    return all(option["value"] == "enabled" for option in json.loads(options) if option["name"] == "tests")


def meson_build(log, folder, *options, env=None):
    if not (TOP / folder / "build.ninja").exists():
        shutil.rmtree(TOP / folder / "meson-private", ignore_errors=True)
        log.run("meson", "setup", folder, *options, env=env)
    elif not has_tests(folder):
        log.run("meson", "configure", folder, "-Dtests=enabled")
    log.run("ninja", "-C", folder)


def meson_tests(log, folder, env=None):
    """Every TAP line is a test; a program that dies without one is a failed test as well."""
    code = log.run("meson", "test", "-C", folder, "--no-rebuild", "--print-errorlogs", env=env, allow_failure=True)
    count = Count()
    with open(TOP / folder / "meson-logs" / "testlog.json") as results:
        for line in results:
            result = json.loads(line)
            own = Count(passed=len(re.findall(r"^ok \d+(?!.*# SKIP)", result["stdout"], re.M)),
                        failed=len(re.findall(r"^not ok \d+", result["stdout"], re.M)),
                        skipped=len(re.findall(r"^ok \d+.*# SKIP", result["stdout"], re.M)))
            if result["result"] == "OK" and own.passed + own.skipped == 0:
                own.passed = 1
            if result["result"] not in ("OK", "SKIP", "EXPECTEDFAIL") and own.failed == 0:
                own.failed = 1
            count.add(own)
    if code and not count.failed:
        count.failed = 1
    return count


def pytest(log, *paths, env=None, workers=0):
    report = LOGS / (log.path.stem + ".xml")
    parallel = ["-n", str(workers)] if workers else []
    code = log.run(PYTHON, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", report, "-o",
                   "junit_family=xunit1", *parallel, *paths, env=env, allow_failure=True)
    count = Count()
    for suite in xml.etree.ElementTree.parse(report).getroot().iter("testsuite"):
        number = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
        bad = number["failures"] + number["errors"]
        count.add(Count(number["tests"] - bad - number["skipped"], bad, number["skipped"]))
    if code and not count.failed:
        count.failed = 1
    reruns = re.findall(r"(\d+) rerun", log.tail(3))
    count.repeated = int(reruns[-1]) if reruns else 0
    return count


# ---- steps ----

SANITIZE_ENV = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}


def step_packages(log):
    log.run("tools/packages", "build", "test", "control-plane")


def step_build(log):
    meson_build(log, "build")


def step_check(log):
    log.run("tools/check")


def step_unit(log):
    return meson_tests(log, "build")


def step_sanitize(log):
    meson_build(log, "build-sanitize", "-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dbuildtype=debugoptimized",
                env={"CC": "clang"})
    return meson_tests(log, "build-sanitize", env=SANITIZE_ENV)


def step_control_plane(log):
    log.run("tools/control-plane", "build")
    return pytest(log, "tests/control-plane")


def step_kube(log):
    return pytest(log, "tests/kube", env=dict(SANITIZE_ENV, SLIPWAY_BUILD=str(TOP / "build-sanitize")))


def step_e2e(log):
    env = dict(SANITIZE_ENV, SLIPWAY_BUILD=str(TOP / "build-sanitize"))
    scale = "tests/e2e/test_scale.py"
    # What took too long is tried once more, since the machine may be to blame, and is counted for all to see. What must
    # never happen is never tried again.
    again = ["--reruns", "1", "--only-rerun", "TimedOut"]
    count = pytest(log, "tests/e2e", "--ignore=" + scale, *again, env=env, workers=4)
    # By itself: five thousand Deployments keep the one controller manager from all other scenes.
    count.add(pytest(log, scale, *again, env=env))
    return count


def step_debian13(log):
    log.run("tools/debian13", "test")


STEPS = {
    "packages": (step_packages, [], "Debian packages that are missing"),
    "build": (step_build, ["packages"], "gcc, every warning an error"),
    "check": (step_check, ["packages"], "layers, banned functions, format"),
    "unit": (step_unit, ["build"], "unit and property tests, seeds of the fuzz targets"),
    "sanitize": (step_sanitize, ["packages"], "the same with clang under AddressSanitizer and UndefinedBehaviorSanitizer"),
    "control-plane": (step_control_plane, ["packages"], "builds the real control plane (once, 6 minutes) and tries it"),
    "kube": (step_kube, ["sanitize", "control-plane"], "the client against the real API server, with faults in between"),
    "e2e": (step_e2e, ["sanitize", "control-plane"], "every scenario on the real control plane"),
    "debian13": (step_debian13, ["packages"], "builds and unit tests in a Debian 13 root: mbedTLS 3.6, llhttp 9"),
}


def with_needs(names):
    wanted = set()

    def want(name):
        for need in STEPS[name][1]:
            want(need)
        wanted.add(name)

    for name in names:
        want(name)
    return [name for name in STEPS if name in wanted]


class Ticker:
    """Shows on a terminal that a step is still at work, and how long."""

    def __init__(self, label):
        self.label, self.begin, self.stop = label, time.monotonic(), threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        period = 1 if sys.stdout.isatty() else 60
        while not self.stop.wait(period):
            seconds = int(time.monotonic() - self.begin)
            if sys.stdout.isatty():
                print("\r\033[K%s %d s" % (self.label, seconds), end="", flush=True)
            else:
                print("%s still at work after %d s" % (self.label.strip(), seconds), flush=True)

    def __enter__(self):
        if sys.stdout.isatty():
            print(self.label, end="", flush=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        self.seconds = time.monotonic() - self.begin
        if sys.stdout.isatty():
            print("\r\033[K", end="")


def run_step(name, total):
    log = Log(name)
    with Ticker("%-14s %s" % (name, STEPS[name][2])) as ticker:
        try:
            count = STEPS[name][0](log)
            why = None
        except (Failed, OSError, xml.etree.ElementTree.ParseError) as error:
            count, why = None, str(error)
    if count:
        total.add(count)
    if why:
        total.failed += 1
    bad = why or (count and count.failed)
    result = why or (str(count) if count else "done")
    print("%-14s %-60s %6.1f s  %s" % (name, STEPS[name][2][:60], ticker.seconds, "FAILED: " + result if bad else result), flush=True)
    if bad:
        print("\n%s\n\n(the end of %s)\n" % (log.tail(), log.path.relative_to(TOP)), flush=True)
    return not bad


def run_steps(names):
    total, begin, is_good = Count(), time.monotonic(), True
    for name in with_needs(names):
        if not run_step(name, total):
            is_good = False
            if name in ("packages", "build"):
                break
    if total.repeated:
        print("\n%d scenarios took too long and were RUN TWICE: look for RERUN in build/test-logs" % total.repeated)
    if total.skipped:
        print("\n%d tests were SKIPPED: look for them in build/test-logs" % total.skipped)
    print("\nin %d s:\n%s" % (time.monotonic() - begin, total))
    return 0 if is_good else 1


def run_fuzz(seconds):
    """Each target for so long, from its seeds, into a corpus of its own outside the repository."""
    log, total = Log("fuzz"), Count()
    log.run("tools/packages", "build", "test")
    meson_build(log, "build-fuzz", "-Dfuzz=true", "-Db_sanitize=address,undefined", "-Db_lundef=false", env={"CC": "clang"})
    for target in sorted((TOP / "build-fuzz" / "tests" / "fuzz").glob("fuzz_*")):
        if not (target.is_file() and os.access(target, os.X_OK)) or target.name.endswith("_replay"):
            continue
        name = target.name.removeprefix("fuzz_")
        corpus = CACHE / "fuzz" / name
        corpus.mkdir(parents=True, exist_ok=True)
        with Ticker("%-14s %d s" % (name, seconds)) as ticker:
            code = log.run(target, "-max_total_time=%d" % seconds, "-timeout=10", "-rss_limit_mb=2048",
                           "-print_final_stats=1", "-artifact_prefix=%s/" % LOGS, corpus,
                           TOP / "tests" / "fuzz" / "corpus" / name, env=SANITIZE_ENV, allow_failure=True)
        runs = re.findall(r"stat::number_of_executed_units: (\d+)", log.tail(40))
        total.add(Count(passed=0 if code else 1, failed=1 if code else 0))
        print("%-14s %6.1f s  %s runs  %s" % (name, ticker.seconds, runs[-1] if runs else "?", "FAILED" if code else "nothing found"), flush=True)
        if code:
            print(log.tail())
    print(total)
    return 1 if total.failed else 0


def main():
    parser = argparse.ArgumentParser(prog="./tools/test", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", metavar="STEP", help="one of: " + ", ".join(STEPS))
    parser.add_argument("--fuzz", nargs="?", type=int, const=60, metavar="SEC", help="run the fuzz targets, so long each (60)")
    parser.add_argument("--list", action="store_true", help="print the steps and what they do")
    args = parser.parse_args()
    if args.list:
        for name, (_, needs, summary) in STEPS.items():
            print("%-14s %s%s" % (name, summary, " (after %s)" % ", ".join(needs) if needs else ""))
        return 0
    if args.fuzz:
        return run_fuzz(args.fuzz)
    for name in args.steps:
        if name not in STEPS:
            parser.error('no step "%s"; --list names them' % name)
    return run_steps(args.steps or list(STEPS))


if __name__ == "__main__":
    sys.exit(main())
