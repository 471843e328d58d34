# SPDX-License-Identifier: Apache-2.0
"""Runs a program in network, mount and process namespaces of its own, with control groups of its own, so that nothing
of it is left however it ends: the kernel ends all processes of the namespace with its first one."""

import contextlib
import ctypes
import glob
import os
import signal
import subprocess
import sys
import time

_libc = ctypes.CDLL(None)
PREFIX = "rayhook-cluster-"


def _die_with_parent():
    _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def hierarchies():
    """Where control groups are mounted, of both versions."""
    with open("/proc/mounts") as mounts:
        return [fields[1] for fields in map(str.split, mounts) if fields[2] in ("cgroup", "cgroup2")]


def make_groups(name):
    for root in hierarchies():
        path = os.path.join(root, name)
        os.makedirs(path, exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):  # version 1: a new group has none
            with contextlib.suppress(OSError):
                with open(os.path.join(root, setting)) as source, open(os.path.join(path, setting), "w") as out:
                    out.write(source.read())


def remove_groups(name):
    deadline = time.monotonic() + 20
    for root in hierarchies():
        for folder, _, _ in os.walk(os.path.join(root, name), topdown=False):
            while True:
                try:
                    os.rmdir(folder)
                    break
                except FileNotFoundError:
                    break
                except OSError:  # its last processes are just going
                    if time.monotonic() > deadline:
                        print(f"cannot remove {folder}", file=sys.stderr)
                        break
                    time.sleep(0.1)


def remove_left():
    """What a run left that was killed together with its parent."""
    for root in hierarchies():
        for path in glob.glob(os.path.join(root, PREFIX + "*")):
            name = os.path.basename(path)
            if not os.path.exists(f"/proc/{name.removeprefix(PREFIX)}"):
                remove_groups(name)


def possible():
    """None, or why it cannot be done here."""
    if os.geteuid() != 0:
        return "it takes root"
    done = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "ip", "link", "add", "b0", "type", "bridge"],
                          capture_output=True, text=True)
    return None if done.returncode == 0 else f"no namespaces with a bridge in them: {done.stderr.strip()}"


def run_isolated(*command):
    """Gives the exit code. ctrl-C and SIGTERM end all of it."""
    remove_left()
    group = PREFIX + str(os.getpid())
    make_groups(group)
    child = None

    def end(signum, _):
        if child and child.poll() is None:
            child.kill()
        sys.exit(128 + signum)
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    try:
        child = subprocess.Popen(["unshare", "--net", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
                                  "--mount-proc", *command, "--cgroup", "/" + group], start_new_session=True, preexec_fn=_die_with_parent)
        return child.wait()
    finally:
        for signum in (signal.SIGTERM, signal.SIGINT):  # once is enough
            signal.signal(signum, signal.SIG_IGN)
        if child and child.poll() is None:
            child.kill()
            child.wait()
        remove_groups(group)
