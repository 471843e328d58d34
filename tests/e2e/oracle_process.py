# SPDX-License-Identifier: Apache-2.0
"""The Go oracle, as the tests of tests/oracle ask it."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
from support import Oracle  # noqa: E402

__all__ = ["Oracle"]
