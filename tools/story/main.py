# SPDX-License-Identifier: Apache-2.0
"""./tools/run: brings up a cluster, starts slipway on it and plays a story."""

import argparse
import contextlib
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from story import plays  # noqa: E402
from story.stage import NAMESPACE, TOP, Failed, RealStage, SimulatedStage, Step, run  # noqa: E402
from story.stepping import play_stepping  # noqa: E402

PLAYS = dict(plays.PLAYS, stepping=(play_stepping, "an update stops three times and is measured; a bad one goes back"))

DESCRIPTION = """\
Plays a story of slipway on a cluster of its own on this machine. Installs and builds what is missing.

stories:
""" + "\n".join("  %-10s %s" % (name, summary) for name, (_, summary) in PLAYS.items())
EPILOG = """\
The cluster is slipway-sim, a simulated one in one small process; with --real it is a real etcd,
kube-apiserver and kube-controller-manager on 127.0.0.1, which are built once in about six minutes,
and a helper plays the kubelets. No container runs in either. Everything is stopped and removed at
the end, unless you --keep it.

They are of Kubernetes 1.20.2; SLIPWAY_KUBERNETES=1.36 ./tools/run --real takes another release
(tools/control-plane --help).
"""
TRY_NEXT = """\
The cluster and slipway go on until you press Ctrl-C. In another terminal:

  export KUBECONFIG=%(kubeconfig)s
"""
TRY_STEPPING = """\
  %(kubectl)s -n %(namespace)s get deployments,steppedrollouts
  %(kubectl)s -n %(namespace)s describe steppedrollout web
  %(kubectl)s -n %(namespace)s set image deployment/web web=example.org/web:4.0.0
  %(kubectl)s -n %(namespace)s get steppedrollouts --watch
  %(kubectl)s -n %(namespace)s annotate steppedrollout web slipway.dev/promote=full
"""
TRY_TURNS = """\
  %(kubectl)s -n %(namespace)s get deployments,deploymentcoordinations
  %(kubectl)s -n %(namespace)s set image deployment/cart cart=example.org/cart:3.0.0
  %(kubectl)s -n %(namespace)s set image deployment/catalog catalog=example.org/catalog:3.0.0
  %(kubectl)s -n %(namespace)s get deploymentcoordinations --watch
  %(kubectl)s -n %(namespace)s describe deployment catalog
  %(kubectl)s -n %(namespace)s annotate deployment catalog slipway.dev/hold="not today"
"""


def run_shown(*argv):
    """For what shows its own progress."""
    if subprocess.call([str(arg) for arg in argv], cwd=TOP, stdin=subprocess.DEVNULL):
        raise Failed("%s failed (see above)" % " ".join(map(str, argv)))


def build(*targets):
    if not (TOP / "build" / "build.ninja").exists():
        # Without what only tests need; tools/test asks for that.
        run("meson", "setup", "build", "-Dtests=disabled")
    run("ninja", "-C", "build", *targets)


def prepare(is_real):
    with Step("look for missing packages"):
        run("tools/packages", "build", *(["control-plane"] if is_real else []))
    with Step("build slipway"):
        build("slipway", "modules", *([] if is_real else ["tools/sim/slipway-sim"]))
    if is_real:
        run_shown("tools/control-plane", "build")


def keep(stage, try_next):
    env = stage.at.environment()
    print((TRY_NEXT + try_next) % {"kubeconfig": env["KUBECONFIG"], "kubectl": env.get("SLIPWAY_KUBECTL", "kubectl"), "namespace": NAMESPACE})
    print("slipway's log: %s" % " and ".join(str(slipway.log) for slipway in stage.slipways))
    with contextlib.suppress(KeyboardInterrupt):
        for slipway in stage.slipways:
            slipway.process.wait()  # one that the story has killed is no reason to end
    print()


def play(stage, story, is_kept):
    with Step("start " + stage.what):
        stage.start()
    try:
        PLAYS[story][0](stage)
        if is_kept:
            keep(stage, TRY_STEPPING if story == "stepping" else TRY_TURNS)
    finally:
        with Step("stop and remove everything"):
            stage.stop()


def complain(error, folder):
    print("\n./tools/run: %s" % error, file=sys.stderr)
    for log in sorted(folder.glob("slipway*/log")):
        print("\nthe last words of %s:\n%s" % (log.parent.name, "\n".join(log.read_text().splitlines()[-15:])), file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(prog="./tools/run", description=DESCRIPTION, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("story", nargs="?", default="shop", metavar="STORY", help="one of those above (shop)")
    parser.add_argument("--real", action="store_true", help="on a real control plane")
    parser.add_argument("--keep", action="store_true", help="leave it up until Ctrl-C, and say what to try")
    parser.add_argument("--list", action="store_true", help="print the stories")
    args = parser.parse_args()
    if args.list:
        print("\n".join("%-10s %s" % (name, summary) for name, (_, summary) in PLAYS.items()))
        return 0
    if args.story not in PLAYS:
        parser.error('there is no story "%s"; there are %s' % (args.story, ", ".join(PLAYS)))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="slipway-run-"))
    try:
        prepare(args.real)
        play((RealStage if args.real else SimulatedStage)(folder), args.story, args.keep)
    except (Failed, AssertionError) as error:
        complain(error, folder)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
