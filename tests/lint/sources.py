# SPDX-License-Identifier: Apache-2.0
"""Which files the lint tests read."""

import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def tracked(*patterns):
    """Paths from the root of the files that git knows (all of them without patterns)."""
    listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z", "--", *patterns],
                            cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in listed.split("\0") if path and os.path.isfile(os.path.join(ROOT, path))]
