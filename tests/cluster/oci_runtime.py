#!/usr/bin/python3 -I
# SPDX-License-Identifier: Apache-2.0
"""runc, for machines without CAP_SYS_RESOURCE: it may neither lower oom_score_adj nor raise limits there, and ends at
once where a container asks for that. So containers do not ask. RUNC names the real one."""

import json
import os
import sys


def lighten(path, process_of):
    with open(path) as file:
        document = json.load(file)
    process = process_of(document)
    process.pop("oomScoreAdj", None)
    process.pop("rlimits", None)
    for names in process.get("capabilities", {}).values():
        if "CAP_SYS_RESOURCE" in names:
            names.remove("CAP_SYS_RESOURCE")
    with open(path, "w") as file:
        json.dump(document, file)


arguments = sys.argv[1:]
for i, argument in enumerate(arguments[:-1]):
    if argument == "--bundle":
        lighten(os.path.join(arguments[i + 1], "config.json"), lambda document: document["process"])
    elif argument == "--process":
        lighten(arguments[i + 1], lambda document: document)
os.execv(os.environ["RUNC"], ["runc", *arguments])
