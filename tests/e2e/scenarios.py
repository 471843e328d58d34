# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: scenarios that are run and counted, a directory, and that all is stopped."""

import argparse
import http.client
import shutil
import signal
import sys
import tempfile
import time
import traceback

from api import Api, Refused
from control_plane import ControlPlane, KubectlError

START = time.monotonic()


def say(text):
    print(f"[{time.monotonic() - START:6.1f}s] {text}", flush=True)


class Wrong(Exception):
    pass


def expect(condition, message):
    if not condition:
        raise Wrong(message)


def table(heads, rows):
    """Lines of a Markdown table, as docs/reliability.md has them."""
    cells = [[str(cell) for cell in row] for row in [heads, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


class Scenarios:
    """A control plane, and scenarios in order. `run` is a subclass's; whatever is appended to `started` is stopped
    at the end, the last first."""

    def __init__(self, arguments, directory):
        self.arguments, self.directory = arguments, directory
        self.plane = self.control_plane()
        self.api = Api(self.plane)
        self.started = [self.plane]
        self.passed, self.failed = 0, []

    def control_plane(self):
        return ControlPlane(self.arguments.bin, self.directory)

    def scenario(self, name, run, *arguments):
        start = time.monotonic()
        try:
            run(*arguments)
            self.passed += 1
            say(f"ok    {name} ({time.monotonic() - start:.1f} s)")
            return True
        except (Wrong, KubectlError, Refused) as error:
            text = str(error)
        except (TimeoutError, RuntimeError, KeyError, IndexError, OSError, http.client.HTTPException):
            text = traceback.format_exc()
        self.failed.append(name)
        say(f"FAIL  {name} ({time.monotonic() - start:.1f} s): {text}")
        return False

    def logs(self):
        """What is worth reading after a failure."""
        return []

    def stop(self):
        for one in reversed(self.started):
            one.stop()


def main(suite_class, description, more_arguments=lambda parser: None):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rayhook", required=True, help="the program")
    parser.add_argument("--bin", required=True, help="directory printed by binaries.sh")
    parser.add_argument("--keep", action="store_true", help="keep the directory with logs, keys and data")
    more_arguments(parser)
    arguments = parser.parse_args()
    # Both become exceptions, so that everything is stopped on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with it ignored
    directory = tempfile.mkdtemp(prefix="rayhook-e2e-")
    suite = None
    try:
        suite = suite_class(arguments, directory)
        suite.run()
    except KeyboardInterrupt:
        return 130
    finally:
        for signum in (signal.SIGTERM, signal.SIGINT):  # once is enough
            signal.signal(signum, signal.SIG_IGN)
        if suite:
            if suite.failed:
                for process in suite.logs():
                    print(f"--- the end of {process.name}'s log\n{process.tail(40)}---")
            suite.stop()
        if arguments.keep:
            say(f"kept: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    say(f"{suite.passed} passed, {len(suite.failed)} failed" + "".join(f"\n  {name}" for name in suite.failed))
    return 1 if suite.failed else 0
