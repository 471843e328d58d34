#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proof on a real cluster: one Kubernetes node on this machine, whose network allows no hairpin, real Ray, and Rayhook
from its own image and manifests. Jobs that fail without it pass with it. docs/proof.md."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..", "manifests")]

import isolate  # noqa: E402
from rows import Rows  # noqa: E402
from scenarios import say  # noqa: E402


def gathered(*command):
    """The last line that a script prints: where it has put things."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed (see above)")
    return done.stdout.split()[-1] if done.stdout else ""


def inside(arguments):
    suite = Rows(arguments, arguments.directory)
    try:
        suite.run()
        suite.print_table()
        if suite.failed:
            for process in suite.logs():
                print(f"--- the end of {process.name}'s log\n{process.tail(25)}---")
        if arguments.keep:
            say(f"kept until ctrl-C. From another shell: nsenter -a -t {suite.outer_pid()} env "
                f"KUBECONFIG={suite.plane.admin} PATH={arguments.bin}:$PATH bash")
            subprocess.run(["sleep", "infinity"])
    finally:
        suite.stop()
    say(f"{suite.passed} passed, {len(suite.failed)} failed" + "".join(f"\n  {name}" for name in suite.failed))
    return 1 if suite.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rayhook", required=True, help="the program")
    parser.add_argument("--bin", required=True, help="directory printed by tests/e2e/binaries.sh")
    parser.add_argument("--tools", required=True, help="directory printed by tests/manifests/tools.sh")
    parser.add_argument("--keep", action="store_true", help="leave the cluster up at the end, until ctrl-C")
    parser.add_argument("--only", metavar="REGEX", default="", help="these rows, beside the installation and the cured cluster that most stand on")
    for name in ("--inside", "--cgroup", "--directory", "--node-bin", "--images"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        return inside(arguments)
    why = isolate.possible()
    if why:
        print(f"cluster-test: cannot run here: {why}", file=sys.stderr)
        return 77
    node = gathered(os.path.join(HERE, "binaries.sh"))
    images = gathered(os.path.join(HERE, "images.sh"), os.path.join(node, "pause"))
    gathered(os.path.join(ROOT, "scripts", "image.sh"))
    directory = tempfile.mkdtemp(prefix="rayhook-cluster-")
    try:
        return isolate.run_isolated(sys.executable, *sys.argv, "--inside", "yes", "--directory", directory, "--node-bin", node, "--images", images)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
