#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the documentation shows is true: its commands are run.

In a fenced block marked `console`, and in the comments that begin an example, a line `$ COMMAND` is run from the
repository's root if it calls build/release/bin/rayhook; of `make GOAL` only the goal's existence is checked. Lines
after it up to the next `$ ` must appear in the output in this order; `…` stands for anything, also within a line.
Links to files in the repository must lead somewhere."""

import os
import re
import subprocess
import sys

from sources import ROOT, tracked

PROGRAM = "build/release/bin/rayhook"


def blocks(path, text):
    """(line number, lines) of each console block."""
    lines = text.split("\n")
    if path.endswith(".yaml"):
        head = []
        for line in lines:
            if not line.startswith("#"):
                break
            head.append(line.lstrip("#").strip())
        yield 1, [line for line in head if line.startswith("$ ")]
        return
    start = None
    for number, line in enumerate(lines, 1):
        if start is None and line.strip() == "```console":
            start = number
        elif start is not None and line.strip() == "```":
            yield start + 1, lines[start:number - 1]
            start = None


def commands(first, lines):
    """(line number, command, expected output lines)."""
    found = []
    for number, line in enumerate(lines, first):
        if line.startswith("$ "):
            found.append((number, line[2:], []))
        elif found and found[-1][1].endswith("\\"):
            number, command, expected = found.pop()
            found.append((number, command + "\n" + line, expected))
        elif found and line.strip():
            found[-1][2].append(line.rstrip())
    return found


def missing_line(expected, output):
    """The first expected line that does not come, in order."""
    have = iter(output.split("\n"))
    for line in expected:
        if line.strip() == "…":
            continue
        wanted = re.compile(".*".join(re.escape(part) for part in line.split("…")))
        if not any(wanted.fullmatch(candidate.rstrip()) for candidate in have):
            return line
    return None


def run(command, expected):
    """None, or what is wrong."""
    goal = re.match(r"make\s+([a-z-]+)", re.sub(r"^(sudo )?([A-Z]+=\S+ )*", "", command))
    if goal:
        with open(os.path.join(ROOT, "Makefile")) as file:
            return None if re.search(rf"^{goal.group(1)}:", file.read(), re.MULTILINE) else f"no make goal {goal.group(1)}"
    if PROGRAM not in command:
        return None
    result = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=ROOT, capture_output=True, text=True,
                            timeout=30, stdin=subprocess.DEVNULL)
    output = result.stdout + result.stderr
    if result.returncode:
        return f"exit code {result.returncode}\n{output}"
    line = missing_line(expected, output)
    return f"this line does not come: {line}\nwhat came:\n{output}" if line is not None else None


def dead_links(path, text):
    for match in re.finditer(r"\]\(([^)#\s]+)(#[^)]*)?\)", text):
        target = match.group(1)
        if "://" not in target and not os.path.exists(os.path.join(ROOT, os.path.dirname(path), target)):
            yield text.count("\n", 0, match.start()) + 1, f"the link leads nowhere: {target}"


def main():
    count = wrong = 0
    for path in tracked("*.md", "examples/*.yaml"):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            text = file.read()
        problems = list(dead_links(path, text)) if path.endswith(".md") else []
        for first, lines in blocks(path, text):
            for number, command, expected in commands(first, lines):
                count += 1
                problem = run(command, expected)
                if problem:
                    problems.append((number, f"$ {command}\n{problem}"))
        for number, problem in problems:
            wrong += 1
            print(f"{path}:{number}: {problem}")
    print(f"{count} commands, {wrong} findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
