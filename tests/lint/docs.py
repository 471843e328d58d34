#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the documentation shows is true: its commands are run.

In a fenced block marked `console`, and in the comments that begin an example, a line `$ COMMAND` is run from the
repository's root if it calls build/release/bin/rayhook; of `make GOAL` only the goal's existence is checked. Lines
after it up to the next `$ ` must appear in the output in this order; `…` stands for anything, also within a line.
Links to files in the repository must lead somewhere, and those to a heading find it. The closed lists that pages show
(reasons, messages of the log) are those of the code."""

import json
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


def anchors(text):
    """What links into a page may name: its headings as GitHub writes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(path, text):
    for match in re.finditer(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", text):
        target, anchor = match.groups()
        if "://" in target or not (target or anchor):
            continue
        where = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if not os.path.exists(os.path.join(ROOT, where)):
            yield text.count("\n", 0, match.start()) + 1, f"the link leads nowhere: {target}"
        elif anchor and where.endswith(".md") and anchor not in anchors(read(where)):
            yield text.count("\n", 0, match.start()) + 1, f"{where} has no such heading: {anchor}"


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def reasons():
    """The closed list, in its order."""
    return re.findall(r'\{Reason::\w+, "([a-z-]+)"', read("lib/reason.cpp"))


def log_messages():
    """What the server logs besides decisions: each `event(LogLevel::…, "…")`, its literals put together."""
    for path in tracked("server/*.cpp"):
        for call in re.finditer(r"\bevent\(\s*LogLevel::\w+,(.*?)(?:\{|\);)", read(path), re.DOTALL):
            for message in re.findall(r'"(?:[^"]|"\s*")*"', call.group(1)):  # two of them: a ternary
                yield re.sub(r'"\s*"', "", message).strip('"')


def pages_and_code():
    """(path, what is wrong): lists that stand both on a page and in the code."""
    page = "docs/troubleshooting.md"
    headings = re.findall(r"^### `([a-z-]+)`$", read(page), re.MULTILINE)
    if headings != reasons():
        yield page, f"its reasons are not those of lib/reason.cpp, or not in their order: {set(headings) ^ set(reasons()) or 'order'}"
    page = "docs/audit-log.schema.json"
    if json.loads(read(page))["$defs"]["decision"]["properties"]["reason"]["enum"] != reasons():
        yield page, "its reasons are not those of lib/reason.cpp, in their order"
    page = "docs/audit-log.md"
    table = read(page).partition("## Other lines")[2]
    shown = [name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)][1:]
    said = set(log_messages())
    known = {name: {message for message in said if message == name or (name.endswith("…") and message.startswith(name[:-1].rstrip()))}
             for name in shown}
    for name, messages in known.items():
        if not messages:
            yield page, f"the server logs no line with this msg: {name}"
    for message in said - set().union(*known.values()):
        yield page, f"a msg of the server's is missing: {message}"


def main():
    count = wrong = 0
    for path, problem in pages_and_code():
        wrong += 1
        print(f"{path}: {problem}")
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
