#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over every C++ source of the build tree, remembering what passed.

A source that passed is not looked at again until it, a header it includes (as the build's own
dependency records tell), its flags, .clang-tidy or clang-tidy itself changes. What passed is kept in
${RAYHOOK_CACHE:-~/.cache/rayhook}/tidy, so that a fresh clone on the same machine profits."""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.path.join(os.environ.get("RAYHOOK_CACHE") or os.path.expanduser("~/.cache/rayhook"), "tidy")
TIDY = "clang-tidy-19"
# Flags of g++ that clang does not know are no finding.
EXTRA = ["--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-ignored-optimization-argument"]


def dependencies(build):
    """object file → the files it was made of; empty where nothing was built yet."""
    out, target, found = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True), None, {}
    for line in out.stdout.splitlines():
        if line.startswith("    "):
            found[target].append(line.strip())
        elif line:
            target = line.split(":")[0]
            found[target] = []
    return found


def content(path, memo={}):
    """What stands for a file in the key: ours by content, the system's by size and time."""
    if path not in memo:
        if path.startswith(ROOT + os.sep):
            with open(path, "rb") as file:
                memo[path] = hashlib.sha256(file.read()).hexdigest()
        else:
            status = os.stat(path)
            memo[path] = f"{status.st_size} {status.st_mtime_ns}"
    return memo[path]


def settings(source):
    """The .clang-tidy files that hold for a source: of its folder and of those above it."""
    folder = os.path.dirname(source)
    while folder.startswith(ROOT):
        path = os.path.join(folder, ".clang-tidy")
        if os.path.exists(path):
            yield path
        folder = os.path.dirname(folder)


def key(entry, files, version):
    digest = hashlib.sha256()
    command = entry["command"].replace(ROOT, ".")
    for part in [version, command, " ".join(EXTRA), content(__file__)]:
        digest.update(part.encode() + b"\n")
    for path in sorted({*files, *settings(os.path.normpath(os.path.join(entry["directory"], entry["file"])))}):
        path = os.path.normpath(os.path.join(entry["directory"], path))
        digest.update(f"{path.replace(ROOT, '.')} {content(path)}\n".encode())
    return digest.hexdigest()


def check(entry, build):
    started = time.monotonic()
    result = subprocess.run([TIDY, "--quiet", "-p", build, *EXTRA, entry["file"]], capture_output=True, text=True)
    noise = re.compile(r"^(\d+ warnings? (treated as errors|generated)|Suppressed \d+|Use -header-filter)")
    errors = [line for line in result.stderr.splitlines() if line and not noise.match(line)]
    output = result.stdout.strip() or ("\n".join(errors) if result.returncode else "")
    return result.returncode == 0, output, time.monotonic() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("files", nargs="*", help="only these files and folders (default: all)")
    arguments = parser.parse_args()
    build = os.path.abspath(arguments.build)
    with open(os.path.join(build, "compile_commands.json")) as file:
        entries = json.load(file)
    if arguments.files:
        wanted = tuple(os.path.join(os.path.abspath(name), "") for name in arguments.files)
        entries = [entry for entry in entries if (entry["file"] + os.sep).startswith(wanted)]
    made_of = dependencies(build)
    version = subprocess.run([TIDY, "--version"], capture_output=True, text=True, check=True).stdout

    os.makedirs(CACHE, exist_ok=True)
    todo = []
    for entry in entries:
        files = made_of.get(entry["output"] if "output" in entry else "", [])
        if not files:
            match = re.search(r" -o (\S+)", entry["command"])
            files = made_of.get(match.group(1), []) if match else []
        stamp = None
        if files:  # nothing known of its headers: look at it each time
            stamp = os.path.join(CACHE, key(entry, [entry["file"], *files], version))
            if os.path.exists(stamp):
                os.utime(stamp)
                continue
        todo.append((entry, stamp))
    print(f"clang-tidy: {len(entries)} sources, {len(entries) - len(todo)} passed before, {len(todo)} to look at", flush=True)

    # The largest first, so that the last minute keeps both cores busy.
    todo.sort(key=lambda item: -len(made_of.get(item[0].get("output", ""), [])))
    bad = []
    seen = set()  # a header's finding comes with every source that includes it
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        running = {pool.submit(check, entry, build): (entry, stamp) for entry, stamp in todo}
        for number, done in enumerate(concurrent.futures.as_completed(running), 1):
            entry, stamp = running[done]
            passed, output, seconds = done.result()
            name = os.path.relpath(entry["file"], ROOT)
            print(f"[{number}/{len(todo)}] {name} {seconds:.0f} s{'' if passed else ' FAILED'}", flush=True)
            if passed and stamp:
                open(stamp, "w").close()
            if not passed:
                bad.append(name)
                for finding in re.split(r"\n(?=/)", output):
                    if finding.split("\n")[0] not in seen:
                        seen.add(finding.split("\n")[0])
                        print(finding.replace(ROOT + os.sep, ""), flush=True)
    forget_old()
    if bad:
        print(f"clang-tidy: {len(bad)} sources with findings: {' '.join(sorted(bad))}")
        print("A finding that is wrong: // NOLINT(check-name): reason")
        return 1
    return 0


def forget_old():
    """Stamps that no run used for a month."""
    limit = time.time() - 30 * 24 * 3600
    for name in os.listdir(CACHE):
        path = os.path.join(CACHE, name)
        if os.stat(path).st_mtime < limit:
            os.remove(path)


if __name__ == "__main__":
    sys.exit(main())
