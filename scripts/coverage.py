#!/usr/bin/env python3
"""Prints the share of production lines that the tests of a build with gcov reached, by room.

    scripts/coverage.py build/coverage
"""

import collections
import json
import os
import re
import subprocess
import sys

from repository import NOT_PRODUCTION, read


def room_of(path):
    return re.match(r"runtime|\w+/\w+", path).group()


def main():
    build = sys.argv[1]
    summary = os.path.join(build, "coverage.json")
    subprocess.run(["gcovr", "--root", ".", "--object-directory", build, "-j", str(os.cpu_count()),
                    "--filter", "atunner/", "--filter", "faces/", "--filter", "runtime/",
                    "--gcov-ignore-parse-errors",
                    "--json-summary", summary, build], check=True)
    lines, reached = collections.Counter(), collections.Counter()
    for entry in json.loads(read(summary))["files"]:
        if NOT_PRODUCTION.search(entry["filename"]):
            continue
        for name in (room_of(entry["filename"]), "total"):
            lines[name] += entry["line_total"]
            reached[name] += entry["line_covered"]
    print(f"{'room':<20}{'lines':>8}{'reached':>9}")
    for name in sorted(lines, key=lambda room: (room == "total", room)):
        print(f"{name:<20}{lines[name]:>8}{reached[name] / max(1, lines[name]):>9.1%}")


if __name__ == "__main__":
    main()
