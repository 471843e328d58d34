#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All C++ files are as clang-format writes them. `make format` mends them."""

import subprocess
import sys

from sources import ROOT, tracked


def main():
    files = tracked("*.cpp", "*.hpp")
    result = subprocess.run(["clang-format-19", "--dry-run", "-Werror", *files],
                            cwd=ROOT, capture_output=True, text=True)
    if result.returncode:
        wrong = sorted({line.split(":")[0] for line in result.stderr.splitlines() if "error:" in line})
        print(f"not formatted: {' '.join(wrong) or result.stderr}\nmend it with: make format")
        return 1
    print(f"{len(files)} files are formatted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
