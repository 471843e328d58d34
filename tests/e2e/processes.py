# SPDX-License-Identifier: Apache-2.0
"""Programs that run beside a test: started with a log file, waited for with a deadline, always stopped."""

import ctypes
import os
import random
import signal
import socket
import subprocess
import time

_libc = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def _die_with_parent():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def free_ports(count):
    """Loopback ports that nobody listens on; all held at once, so that they differ. From below the range that the
    kernel takes for outgoing connections, any of which could have a port by the time a server wants it."""
    held = []
    while len(held) < count:
        try:
            held.append(socket.create_server(("127.0.0.1", random.randrange(12000, 32000))))
        except OSError:
            continue
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


def wait_until(what, ready, seconds, every=0.1):
    """Polls `ready` until it gives something true, which is returned."""
    deadline = time.monotonic() + seconds
    while True:
        answer = ready()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(every)


class Process:
    def __init__(self, name, command, directory, environment=None):
        self.name, self.log = name, os.path.join(directory, f"{name}.log")
        with open(self.log, "ab") as log:
            # A session of its own: ctrl-C reaches the test alone, which then stops everything in order.
            self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          start_new_session=True, preexec_fn=_die_with_parent, env=environment)

    def tail(self, lines=25):
        with open(self.log, errors="replace") as log:
            return "".join(log.readlines()[-lines:])

    def check(self):
        if self.child.poll() is not None:
            raise RuntimeError(f"{self.name} ended with {self.child.returncode}:\n{self.tail()}")

    def wait_until(self, what, ready, seconds):
        def still_there():
            self.check()
            return ready()
        try:
            return wait_until(what, still_there, seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.tail()}") from None

    def stop(self, seconds=15):
        """SIGTERM, and SIGKILL to this very process if it does not heed it. Returns the exit code."""
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(seconds)
            except subprocess.TimeoutExpired:
                self.child.kill()
        return self.child.wait()
