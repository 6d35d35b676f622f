# SPDX-License-Identifier: Apache-2.0
"""Builds slipway and runs its tests; installs what is missing first.

  ./tools/test                 everything; several steps run beside each other
  ./tools/test unit e2e        only these steps (and what they need)
  ./tools/test --fuzz [SEC]    the fuzz targets, 60 s each unless said otherwise
  ./tools/test --soak MINUTES  slipway in virtual time, seeds that were never tried
  ./tools/test --list          the steps
  SLIPWAY_KUBERNETES=1.36 ./tools/test e2e kube
                               these on that release of Kubernetes and not on 1.20.2; it is built
                               once from its Go modules, by Go, which takes 10 to 25 minutes

A step prints one line when it has ended. What it said in full is in build/test-logs/STEP.log; the end
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
    """repeated: names of tests that passed when they were tried again."""

    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed, self.failed, self.skipped, self.repeated = passed, failed, skipped, []

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


# What another clone has compiled before is taken from its cache: the paths of a clone do not count.
CCACHE = {"CCACHE_BASEDIR": str(TOP), "CCACHE_NOHASHDIR": "1"}


def meson_build(log, folder, *options, cc="gcc", targets=()):
    """targets: these only; otherwise all there is, tests too."""
    env = dict(CCACHE, CC="ccache " + cc)
    if not (TOP / folder / "build.ninja").exists():
        shutil.rmtree(TOP / folder / "meson-private", ignore_errors=True)
        log.run("meson", "setup", folder, *options, env=env)
    elif not targets and not has_tests(folder):
        log.run("meson", "configure", folder, "-Dtests=enabled")
    log.run("ninja", "-C", folder, *targets, env=env)


def meson_tests(log, folder, env=None):
    """Every TAP line is a test; a program that dies without one is a failed test as well."""
    code = log.run("meson", "test", "-C", folder, "--no-rebuild", "--print-errorlogs", "--timeout-multiplier", "4", env=env, allow_failure=True)
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


class Report:
    """What pytest wrote down of one run."""

    def __init__(self, path, code):
        self.count, self.failed, self.is_unforgivable = Count(), [], False
        for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
            bad = [entry for entry in case if entry.tag in ("failure", "error")]
            if bad:
                name = "%s::%s" % (case.get("file"), case.get("name"))
                if name not in self.failed:  # it is there twice where cleaning up failed as well
                    self.failed.append(name)
                self.is_unforgivable |= any(NEVER_AGAIN.search("%s\n%s" % (entry.get("message"), entry.text)) for entry in bad)
            elif case.find("skipped") is not None:
                self.count.skipped += 1
            else:
                self.count.passed += 1
        self.count.failed = len(self.failed)
        if code and not self.failed:
            self.count.failed, self.is_unforgivable = 1, True


def run_pytest(log, name, *args, env=None, prefix=()):
    path = LOGS / (name + ".xml")
    path.unlink(missing_ok=True)
    code = log.run(*prefix, PYTHON, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", TOP, "--junitxml", path, "-o", "junit_family=xunit1",
                   *args, env=env, allow_failure=True)
    return Report(path, code)


def pytest(log, *paths, env=None, workers=0, prefix=()):
    """A few tests that failed beside others are tried once more, alone, since the machine may be to blame; they are named for
    all to see. What must never happen is never tried again. prefix: a command that runs another."""
    parallel = ["-n", str(workers)] if workers else []
    first = run_pytest(log, log.path.stem, *parallel, *paths, env=env, prefix=prefix)
    if not first.failed or first.is_unforgivable or len(first.failed) > MOST_AGAIN:
        return first.count
    second = run_pytest(log, log.path.stem + "-again", *first.failed, env=env, prefix=prefix)
    if second.failed or second.count.passed != len(first.failed):
        return first.count
    first.count.repeated = first.failed
    first.count.passed += first.count.failed
    first.count.failed = 0
    return first.count


# ---- steps ----

SANITIZE_ENV = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}
SANITIZED = dict(SANITIZE_ENV, SLIPWAY_BUILD=str(TOP / "build-sanitize"))
# slipway sanitized on a simulator that is not: that one is tried by the steps kubectl and sanitize.
ON_SIM = dict(SANITIZED, SLIPWAY_E2E_CLUSTER="sim", SLIPWAY_SIM_BUILD=str(TOP / "build"))
SCALE = "tests/e2e/test_scale.py"
MEMORY = "tests/e2e/test_memory.py"
SCENARIOS = ["tests/e2e", "--ignore=" + SCALE, "--ignore=" + MEMORY]  # those have steps of their own
MOST_AGAIN = 4  # where more fail, it is not the machine
NEVER_AGAIN = re.compile("PROMISE BROKEN|Sanitizer|runtime error:")


def step_packages(log):
    log.run("tools/packages", "build", "test", "control-plane", "debian13", "image-test")


def step_build(log):
    meson_build(log, "build")


def step_check(log):
    log.run("tools/check")


def step_unit(log):
    return meson_tests(log, "build")


def step_builtin(log):
    """One executable without shared objects, as a static image has it."""
    meson_build(log, "build-builtin", "-Dbuiltin_modules=coordination,pausing,events,stepping", "-Dtests=disabled", targets=["slipway"])
    log.run("tests/unit/runtime/command_line.py", TOP / "build-builtin" / "slipway")
    if list((TOP / "build-builtin" / "modules").glob("**/*.so")):
        raise Failed("a module that is built in is a shared object as well")


def step_sanitized(log):
    meson_build(log, "build-sanitize", "-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dbuildtype=debugoptimized", cc="clang")


def step_sanitize(log):
    return meson_tests(log, "build-sanitize", env=SANITIZE_ENV)


def step_kubernetes(log):
    log.run("tools/control-plane", "build")


def step_tools(log):
    return pytest(log, "tests/benchmarks", "tests/tools")


def step_control_plane(log):
    return pytest(log, "tests/control-plane", workers=2)


def step_kube(log):
    return pytest(log, "tests/kube", env=SANITIZED, workers=3)


def step_e2e(log):
    return pytest(log, *SCENARIOS, env=SANITIZED, workers=4)


def step_sim(log):
    return pytest(log, *SCENARIOS, env=ON_SIM, workers=4)


def step_kubectl(log):
    return pytest(log, "tests/sim_server", env=SANITIZED, workers=2)


def unsanitized(cluster, name):
    """For tests of size: with sanitizers it is another memory, and another speed."""
    return {"SLIPWAY_BUILD": str(TOP / "build"), "SLIPWAY_E2E_CLUSTER": cluster, "SLIPWAY_E2E_DIR": str(TOP / "build" / "e2e" / name)}


def step_scale(log):
    return pytest(log, SCALE, env=unsanitized("real", "scale"))


def step_scale_sim(log):
    return pytest(log, SCALE, env=unsanitized("sim", "scale-sim"))


def step_telemetry(log):
    return pytest(log, "tests/telemetry", env=dict(ON_SIM, SLIPWAY_E2E_DIR=str(TOP / "build" / "e2e" / "telemetry")))


def step_memory(log):
    return pytest(log, MEMORY, env=unsanitized("sim", "memory"))


def step_charts(log):
    return pytest(log, "tests/charts", env=unsanitized("real", "charts"), workers=2)


def step_debian13(log):
    log.run("tools/debian13", "test")


def step_image(log):
    """Its tests mount and chroot."""
    prefix = ["sudo", "env", "XDG_CACHE_HOME=%s" % CACHE.parent] if os.geteuid() else []
    return pytest(log, "tests/image", prefix=prefix)


class Step:
    """load: how many of the machine's places it takes. Of those that could run, the one that stands first here does."""

    def __init__(self, name, run, load, needs, summary):
        self.name, self.run, self.load, self.needs, self.summary = name, run, load, needs, summary
        self.state, self.begin, self.seconds = "waits", 0.0, 0.0

    def is_done(self):
        return self.state in ("done", "broken")


STEPS = {step.name: step for step in (
    Step("packages", step_packages, 3, [], "Debian packages that are missing"),
    Step("sanitized", step_sanitized, 2, ["packages"], "clang with AddressSanitizer and UndefinedBehaviorSanitizer"),
    Step("kubernetes", step_kubernetes, 1, ["packages"], "the real control plane (built once)"),
    Step("build", step_build, 1, ["packages"], "gcc, every warning an error"),
    Step("e2e", step_e2e, 3, ["sanitized", "kubernetes"], "every scenario on the real control plane"),
    Step("sim", step_sim, 2, ["sanitized", "build", "kubernetes"], "the same scenarios on slipway-sim"),
    Step("kubectl", step_kubectl, 1, ["sanitized", "kubernetes", "build"], "kubectl and faults on slipway-sim; the stories of tools/run"),
    Step("telemetry", step_telemetry, 1, ["sanitized", "build", "kubernetes"], "metrics, dashboard, alerts with a real Prometheus; logs"),
    Step("kube", step_kube, 1, ["sanitized", "kubernetes"], "the client against the real API server, faults between"),
    Step("debian13", step_debian13, 1, ["packages"], "a Debian 13 root: mbedTLS 3.6, llhttp 9"),
    Step("image", step_image, 1, ["build", "kubernetes", "debian13"], "the image: made twice, looked at, run by chroot; its SBOM"),
    Step("unit", step_unit, 1, ["build"], "unit and property tests, seeds of the fuzz targets"),
    Step("sanitize", step_sanitize, 1, ["sanitized"], "the same, sanitized"),
    Step("scale", step_scale, 1, ["build", "kubernetes"], "500 groups; 5 000 Deployments in one"),
    Step("scale-sim", step_scale_sim, 1, ["build", "kubernetes"], "on slipway-sim: 500 groups of 20"),
    Step("builtin", step_builtin, 1, ["packages"], "the modules linked in instead of loaded"),
    Step("check", step_check, 1, ["packages"], "layers, banned functions, format"),
    Step("tools", step_tools, 1, ["build", "kubernetes"], "tools/bench in its quick form; parts of it and of this command"),
    Step("memory", step_memory, 1, ["build", "kubernetes"], "resident memory over rollouts, relists, reconnects"),
    Step("charts", step_charts, 1, ["build", "kubernetes"], "the Helm charts, rendered and installed; helm is built once"),
    Step("control-plane", step_control_plane, 1, ["kubernetes"], "tools/control-plane and tools/kubelets"),
)}
PLACES = 3  # a step that waits for real Pods leaves most of a core to others


def with_needs(names):
    wanted = set()

    def want(name):
        for need in STEPS[name].needs:
            want(need)
        wanted.add(name)

    for name in names:
        want(name)
    return [step for step in STEPS.values() if step.name in wanted]


class Board:
    """Runs steps beside each other, and says which are at work and how each ended."""

    def __init__(self, steps):
        self.steps, self.total, self.changed = steps, Count(), threading.Condition()
        self.is_terminal = sys.stdout.isatty()

    def run(self):
        """True if all passed."""
        said = time.monotonic()
        with self.changed:
            while not all(step.is_done() for step in self.steps):
                self.start_what_can()
                self.changed.wait(1)
                if self.is_terminal:
                    print("\r\033[K" + self.at_work(), end="", flush=True)
                elif time.monotonic() - said >= 60:
                    said = time.monotonic()
                    print("at work: " + self.at_work(), flush=True)
        if self.is_terminal:
            print("\r\033[K", end="")
        return self.total.failed == 0

    def at_work(self):
        return ", ".join("%s %d s" % (step.name, time.monotonic() - step.begin) for step in self.steps if step.state == "runs")

    def start_what_can(self):
        free = PLACES - sum(step.load for step in self.steps if step.state == "runs")
        for step in self.steps:
            needs = [STEPS[need] for need in step.needs]
            broken = [need.name for need in needs if need.state == "broken"]
            if step.state != "waits" or not (broken or all(need.state == "done" for need in needs)):
                continue
            if broken:
                step.state = "broken"
                self.total.failed += 1
                self.say("%-14s NOT RUN, since %s failed" % (step.name, broken[0]))
            elif step.load <= free:
                free -= step.load
                step.state, step.begin = "runs", time.monotonic()
                threading.Thread(target=self.run_step, args=(step,)).start()

    def run_step(self, step):
        log, count, why = Log(step.name), None, None
        try:
            count = step.run(log)
        except (Failed, OSError, xml.etree.ElementTree.ParseError, subprocess.CalledProcessError) as error:
            why = str(error)
        with self.changed:
            self.end_step(step, log, count or Count(failed=1 if why else 0), why)
            self.changed.notify()

    def end_step(self, step, log, count, why):
        step.seconds = time.monotonic() - step.begin
        step.state = "broken" if why else "done"
        self.total.add(count)
        result = why or (str(count) if count.passed or count.failed or count.skipped else "done")
        self.say("%-14s %-56s %6.1f s  %s" % (step.name, step.summary, step.seconds, "FAILED: " + result if count.failed else result))
        if count.failed:
            self.say("\n%s\n\n(the end of %s)\n" % (log.tail(), log.path.relative_to(TOP)))

    def say(self, text):
        print(("\r\033[K" if self.is_terminal else "") + text, flush=True)


def run_steps(names):
    begin = time.monotonic()
    board = Board(with_needs(names))
    is_good = board.run()
    total = board.total
    if total.repeated:
        print("\nRUN TWICE, failed beside others and passed alone; why is in build/test-logs:\n  " + "\n  ".join(total.repeated))
    if total.skipped:
        print("\n%d tests were SKIPPED: look for them in build/test-logs" % total.skipped)
    print("\nin %d s:\n%s" % (time.monotonic() - begin, total))
    return 0 if is_good else 1


# ---- fuzzing ----

class Ticker:
    """Shows on a terminal that a target is still at work, and how long."""

    def __init__(self, label):
        self.label, self.begin, self.stop = label, time.monotonic(), threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while sys.stdout.isatty() and not self.stop.wait(1):
            print("\r\033[K%s %d s" % (self.label, time.monotonic() - self.begin), end="", flush=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        self.seconds = time.monotonic() - self.begin
        if sys.stdout.isatty():
            print("\r\033[K", end="")


def run_fuzz(seconds):
    """Each target for so long, from its seeds, into a corpus of its own outside the repository."""
    log, total = Log("fuzz"), Count()
    log.run("tools/packages", "build", "test")
    meson_build(log, "build-fuzz", "-Dfuzz=true", "-Db_sanitize=address,undefined", "-Db_lundef=false", cc="clang")
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


# ---- soaking ----

def run_soak(minutes):
    """Seeds of the simulation that no run has tried before, until told; shows what it says."""
    log = Log("soak")
    log.run("tools/packages", "build", "test")
    meson_build(log, "build")
    first = int(time.time())
    return subprocess.call([TOP / "build" / "tests" / "sim" / "sim_world", "--first", str(first), "--minutes", str(minutes)], cwd=TOP)


def main():
    parser = argparse.ArgumentParser(prog="./tools/test", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", metavar="STEP", help="one of: " + ", ".join(STEPS))
    parser.add_argument("--fuzz", nargs="?", type=int, const=60, metavar="SEC", help="run the fuzz targets, so long each (60)")
    parser.add_argument("--soak", type=int, metavar="MINUTES", help="simulate slipway in virtual time with new seeds, so long")
    parser.add_argument("--list", action="store_true", help="print the steps and what they do")
    args = parser.parse_args()
    if args.list:
        for step in STEPS.values():
            print("%-14s %s%s" % (step.name, step.summary, " (after %s)" % ", ".join(step.needs) if step.needs else ""))
        return 0
    if args.fuzz:
        return run_fuzz(args.fuzz)
    if args.soak:
        return run_soak(args.soak)
    for name in args.steps:
        if name not in STEPS:
            parser.error('no step "%s"; --list names them' % name)
    return run_steps(args.steps or list(STEPS))


if __name__ == "__main__":
    sys.exit(main())
