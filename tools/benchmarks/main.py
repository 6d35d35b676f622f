# SPDX-License-Identifier: Apache-2.0
"""./tools/bench: builds what is measured, measures it and prints the table."""

import argparse
import pathlib
import shutil
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
# The folder of this file would let its decode.py, say, stand before any other module of that name.
sys.path[:] = [entry for entry in sys.path if pathlib.Path(entry or ".").resolve() != pathlib.Path(__file__).resolve().parent]

from benchmarks import admission, decode, growth, handover, idle, image, replicas, scale, simulation, stand, stepping  # noqa: E402
from benchmarks.figures import FIGURES, Figure, as_json, as_table  # noqa: E402
from story.stage import run  # noqa: E402

SUBJECTS = {
    "decode": decode,
    "idle": idle,
    "admission": admission,
    "handover": handover,
    "scale": scale,
    "growth": growth,
    "replicas": replicas,
    "stepping": stepping,
    "image": image,
    "simulation": simulation,
}
DESCRIPTION = """\
Measures slipway on this machine and prints a table: what was measured, its target, the figure, the
same figure of a baseline in the same run, and how it was obtained. Nothing here passes or fails.

subjects (all of them, if none is named):
""" + "\n".join("  %-11s %s" % (name, module.SUMMARY) for name, module in SUBJECTS.items())
EPILOG = """\
All of it takes about half an hour, and wants a machine with two cores that does nothing else: slipway runs on
one, what measures it on the other. It is built in build-bench as meson builds it by default; SLIPWAY_BUILD names
another folder. The hand-over on a real control plane needs what tools/control-plane build makes, nginx and openssl
come with ./tools/packages test; what is not there is said and left out.
"""


def measure(bench, names):
    """The figures, and whether each subject could be measured."""
    figures, is_whole = [], True
    for name in names:
        bench.say("%s: %s" % (name, SUBJECTS[name].SUMMARY))
        try:
            for figure in SUBJECTS[name].measure(bench):
                figures.append(figure)
        except stand.Missing as missing:
            bench.say("%s is left out: %s" % (name, missing))
            figures += [Figure(key, None, "not measured: %s" % missing) for key in getattr(SUBJECTS[name], "KEYS", ())]
        except (stand.Failed, AssertionError) as error:
            is_whole = False
            print("./tools/bench: %s failed: %s" % (name, error), file=sys.stderr)
        except Exception:  # a fault of the benchmark itself, which must not take the figures of the others along
            is_whole = False
            print("./tools/bench: %s failed:" % name, file=sys.stderr)
            traceback.print_exc()
    return figures, is_whole


def main():
    parser = argparse.ArgumentParser(prog="./tools/bench", description=DESCRIPTION, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="one of the subjects above")
    parser.add_argument("--json", action="store_true", help="print one object of plain numbers instead of the table; null is "
                        "what was not measured")
    parser.add_argument("--quick", action="store_true", help="for people in a hurry: fewer and smaller runs, whose figures "
                        "say little; about four minutes")
    args = parser.parse_args()
    for name in args.names:
        if name not in SUBJECTS:
            parser.error('there is no subject "%s"; there are %s' % (name, ", ".join(SUBJECTS)))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="slipway-bench-"))
    try:
        bench = stand.Bench(args.quick, folder)
        run("tools/packages", "build")
        stand.build(bench)
        figures, is_whole = measure(bench, args.names or list(SUBJECTS))
    except stand.Failed as error:
        print("./tools/bench: %s" % error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if args.json:
        print(as_json(figures, args.quick))
    else:
        print(as_table(figures))
        if args.quick:
            print("\nA quick run: fewer and smaller measurements than the figures are meant for. Do not quote them.")
    return 0 if is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
