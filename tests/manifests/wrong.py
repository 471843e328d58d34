# SPDX-License-Identifier: Apache-2.0
"""How the steps of cluster_test.py fail."""


class Wrong(Exception):
    pass


def expect(condition, message):
    if not condition:
        raise Wrong(message)
