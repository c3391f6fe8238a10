#!/usr/bin/env python3
"""Runs clang-tidy on production sources, several at a time.

    scripts/tidy.py          the sources that a change since main reaches: changed ones, and those
                             that include a changed header, directly or not
    scripts/tidy.py --all    all sources

A source that passed is not looked at again before it, a header that it includes or the settings
change: build/tidy/passed holds a digest for each. The first run over all sources takes about ten
seconds a source.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import re
import subprocess
import sys

from repository import ROOT, changed_files, production_files, read

TIDY = "clang-tidy-19"
# Options of g++ that clang does not know.
GCC_OPTIONS = re.compile(r"-m(mem[a-z]*-strategy|[a-z]*-max)=\S*")
DATABASE = "build/tidy"
PASSED = f"{DATABASE}/passed"


@functools.cache
def direct_includes(path):
    names = re.findall(r'^#include "([^"]+)"', read(path), re.MULTILINE)
    return [name for name in names if os.path.isfile(name)]


@functools.cache
def includes_of(source):
    """The source and the repository's files that it includes, directly or not."""
    reached, open_ends = {source}, [source]
    while open_ends:
        for name in direct_includes(open_ends.pop()):
            if name not in reached:
                reached.add(name)
                open_ends.append(name)
    return reached


def write_database():
    """Copies the compile commands without what only g++ understands; returns them by source."""
    text = GCC_OPTIONS.sub("", read("build/dev/compile_commands.json"))
    os.makedirs(PASSED, exist_ok=True)
    with open(f"{DATABASE}/compile_commands.json", "w", encoding="utf-8") as file:
        file.write(text)
    root = os.getcwd() + "/"
    return {entry["file"].removeprefix(root): entry["command"] for entry in json.loads(text)}


def digest(source, command):
    parts = [command, read(".clang-tidy"), read("atunner/vgpu/.clang-tidy")]
    parts += [read(path) for path in sorted(includes_of(source))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def stamp_of(source):
    return f"{PASSED}/{source.replace('/', '_')}"


def run_one(source, wanted):
    if os.path.exists(stamp_of(source)) and read(stamp_of(source)) == wanted:
        return True, ""
    done = subprocess.run([TIDY, "-p", DATABASE, "--quiet", source], text=True, capture_output=True)
    if done.returncode == 0:
        with open(stamp_of(source), "w", encoding="utf-8") as file:
            file.write(wanted)
    return done.returncode == 0, done.stdout


def main():
    parser = argparse.ArgumentParser(description="Runs clang-tidy on production sources.")
    parser.add_argument("--all", action="store_true", help="not only what differs from main")
    parser.add_argument("-j", type=int, default=os.cpu_count(), help="how many at a time")
    options = parser.parse_args()
    os.chdir(ROOT)
    commands = write_database()
    sources = [path for path in production_files(".cpp") if path in commands]
    if not options.all:
        changed = set(changed_files())
        sources = [p for p in sources if includes_of(p) & changed]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        jobs = {pool.submit(run_one, p, digest(p, commands[p])): p for p in sources}
        for job in concurrent.futures.as_completed(jobs):
            passed, output = job.result()
            if not passed:
                failed += 1
                print(output or f"{jobs[job]}: {TIDY} failed", flush=True)
    print(f"{TIDY}: {len(sources)} sources, {failed} with findings")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
