#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""shellcheck over every shell script; those that are run have `set -euo pipefail`."""

import os
import re
import subprocess
import sys

from sources import ROOT, tracked


def scripts():
    for path in tracked():
        if path.endswith(".sh"):
            yield path
        elif "." not in os.path.basename(path):
            with open(os.path.join(ROOT, path), "rb") as file:
                if re.match(rb"#!.*\b(ba|da)?sh\b", file.readline(80)):
                    yield path


def main():
    files = list(scripts())
    code = subprocess.run(["shellcheck", "-x", *files], cwd=ROOT).returncode
    for path in files:
        with open(os.path.join(ROOT, path)) as file:
            text = file.read()
        # A file that may not be executed is there to be sourced, and has its options from there.
        if os.access(os.path.join(ROOT, path), os.X_OK) and not re.search(r"^set -euo pipefail$", text, re.MULTILINE):
            print(f"{path}: no line `set -euo pipefail`")
            code = 1
    print(f"{len(files)} scripts looked at")
    return code


if __name__ == "__main__":
    sys.exit(main())
