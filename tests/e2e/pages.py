# SPDX-License-Identifier: Apache-2.0
"""The commands of our pages, as users copy them."""

import os
import re

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")


def block(page, part, **names):
    """The one shell block of docs/PAGE that has `part` in it, with the names that stand for something filled in."""
    with open(os.path.join(DOCS, page), encoding="utf-8") as file:
        [found] = [found for found in re.findall(r"```sh\n(.*?)```", file.read(), re.DOTALL) if part in found]
    for name, value in names.items():
        found = re.sub(rf"\b{name}\b", value, found)
    return found
