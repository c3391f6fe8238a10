#!/usr/bin/env python3
"""Measures the structure of the code base and prints it as one table, by room and in total.

    scripts/structure.py                   the table for this checkout
    scripts/structure.py --repo DIR        for another one
    scripts/structure.py --functions 20    also each function of more than 20 lines
    scripts/structure.py --check           also compares with the limits below;
                                           exit status 1 when one is exceeded

Definitions:

* Production files are the tracked .h, .cpp and .def files under atunner/, faces/ and runtime/,
  without tests, fuzz targets, shared test cases, testing/ and testdata/.
* The length of a function is its number of lines from the first line of the declarator to the
  closing brace, as universal-ctags reports it. Functions that a macro defines are not seen.
* The methods of a class are the member functions that production files define, in the class or
  outside of it. Its fields are the non-static data members except references: those give access
  to other objects and are no state of the class itself.
* Comment shares are relative to the lines that are not blank. A comment line holds nothing but a
  comment; a trailing comment follows code on its line.
* A unit is a header with the source of the same name. Two units are mutual when each includes the
  other; two folders of a room are mutual when each holds a file that includes one of the other.
* The percentile p of n sorted values is the value at the index floor(p * n).
"""

import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys

from repository import ROOT, production_files, read, tracked_files

CTAGS = ["ctags", "--output-format=json", "--fields=+neKst", "--kinds-C++=fm", "-L", "-", "-o", "-"]

# The limits of --check.
FUNCTION_P90 = 20
CLASS_METHODS = 40
CLASS_FIELDS = 25
FREE_CLASSES = {
    "DeviceProperties": "has the layout of CUDA's cudaDeviceProp",
}
LONG_LINE = 100
LONG_LINE_SHARE = 0.01
FOLDER_FILES = 40

LEGEND = f"""
Functions and files are measured in lines. folder: .h and .cpp files directly in the largest one.
comments, trailing, >{LONG_LINE}: comment lines, lines with a trailing comment and lines of more
than {LONG_LINE} characters, as shares of the lines that are not blank. width: 90th percentile of
the length of these. mutual: pairs of units that include each other.
"""

Function = collections.namedtuple("Function", "length path line name")


def percentile(values, p):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * p))] if ordered else 0


def room_of(path):
    parts = path.split("/")
    return parts[0] if parts[0] == "runtime" else "/".join(parts[:2])


def unit_of(path):
    return re.sub(r"\.(h|cpp)$", "", path)


class Lines:
    """Counts of the lines of some files."""

    def __init__(self):
        self.total = self.blank = self.comments = self.trailing = self.long = 0
        self.widths = []

    def add_file(self, lines):
        in_block = False
        for line in lines:
            text = line.strip()
            self.total += 1
            self.long += len(line) > LONG_LINE
            if not text:
                self.blank += 1
                continue
            self.widths.append(len(line))
            if in_block or text.startswith(("//", "/*")):
                self.comments += 1
                in_block = "*/" not in text and (in_block or text.startswith("/*"))
            elif has_trailing_comment(line):
                self.trailing += 1

    def add(self, other):
        self.total += other.total
        self.blank += other.blank
        self.comments += other.comments
        self.trailing += other.trailing
        self.long += other.long
        self.widths += other.widths

    def share(self, count):
        return count / max(1, self.total - self.blank)


def has_trailing_comment(line):
    without_strings = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return "//" in without_strings or "/*" in without_strings


class Tags:
    """The functions and classes that universal-ctags finds. Classes go by their qualified names."""

    def __init__(self, paths):
        self.functions = []
        self.files_of = {}  # where an unnamed namespace was met
        self.methods = collections.Counter()
        self.fields = collections.Counter()
        sources = "\n".join(path for path in paths if path.endswith((".h", ".cpp")))
        found = subprocess.run(CTAGS, input=sources, text=True, capture_output=True, check=True)
        for line in found.stdout.split("\n"):
            if line:
                self.add(json.loads(line))

    def add(self, tag):
        in_class = tag.get("scopeKind") in ("class", "struct", "union")
        self.files_of.setdefault(tag.get("scope"), tag["path"])
        if tag["kind"] == "function":
            if "end" in tag:
                length = tag["end"] - tag["line"] + 1
                self.functions.append(Function(length, tag["path"], tag["line"], tag["name"]))
            if in_class:
                self.methods[tag["scope"]] += 1
        elif in_class and not is_reference_or_static(tag):
            self.fields[tag["scope"]] += 1


    def readable(self, scope):
        """The qualified name of a class, with the file's name for an unnamed namespace."""
        return re.sub(r"__anon\w+", os.path.basename(self.files_of[scope]), scope)


def is_reference_or_static(tag):
    if tag.get("typeref", "").endswith("&"):
        return True
    return re.search(r"\b(static|constexpr)\b", tag["pattern"]) is not None


def includes_by_unit(texts):
    graph = {}
    for path, lines in texts.items():
        if not path.endswith((".h", ".cpp")):
            continue
        targets = graph.setdefault(unit_of(path), set())
        for line in lines:
            include = re.match(r'#include "([^"]+)"', line)
            if include:
                targets.add(unit_of(include.group(1)))
    known = set(graph)
    return {unit: (targets & known) - {unit} for unit, targets in graph.items()}


def mutual_pairs(graph):
    return sorted((a, b) for a in graph for b in graph[a] if a < b and a in graph[b])


def folder_pairs(graph):
    """Pairs of folders of one room that include each other."""
    folders = collections.defaultdict(set)
    for unit, targets in graph.items():
        for target in targets:
            here, there = os.path.dirname(unit), os.path.dirname(target)
            if here != there and room_of(unit) == room_of(target):
                folders[here].add(there)
    return sorted((a, b) for a in folders for b in folders[a] if a < b and a in folders.get(b, ()))


def cycles(graph):
    """The strongly connected components of more than one unit, by Tarjan's algorithm."""
    order, low, stack, found = {}, {}, [], []

    def visit(unit):
        order[unit] = low[unit] = len(order)
        stack.append(unit)
        for target in graph[unit]:
            if target not in order:
                visit(target)
                low[unit] = min(low[unit], low[target])
            elif target in stack:
                low[unit] = min(low[unit], order[target])
        if low[unit] == order[unit]:
            component = stack[stack.index(unit):]
            del stack[stack.index(unit):]
            if len(component) > 1:
                found.append(sorted(component))

    sys.setrecursionlimit(10000)
    for unit in graph:
        if unit not in order:
            visit(unit)
    return sorted(found, key=len, reverse=True)


class Structure:
    """All that is measured of the checkout in the current folder."""

    def __init__(self):
        self.paths = production_files(".h", ".cpp", ".def")
        self.texts = {path: read(path).splitlines() for path in self.paths}
        self.tags = Tags(self.paths)
        self.graph = includes_by_unit(self.texts)
        self.unit_pairs = mutual_pairs(self.graph)
        self.folder_pairs = folder_pairs(self.graph)
        # A .def file is a list of entries: it does not count among the files and in folders.
        sources = [path for path in self.paths if not path.endswith(".def")]
        self.folders = collections.Counter(map(os.path.dirname, sources))
        self.with_tests = collections.Counter()  # by folder, with its sub-folders
        for path in tracked_files():
            while "/" in path:
                path = os.path.dirname(path)
                self.with_tests[path] += 1

    def lines_of(self, paths):
        lines = Lines()
        for path in paths:
            lines.add_file(self.texts[path])
        return lines

    def row(self, name, paths, pairs):
        chosen = set(paths)
        functions = [f.length for f in self.tags.functions if f.path in chosen]
        files = [len(self.texts[path]) for path in paths if not path.endswith(".def")]
        folder = max(self.folders[os.path.dirname(path)] for path in paths)
        lines = self.lines_of(paths)
        return [
            name, len(functions), quantiles(functions, 0.5, 0.9, 0.99),
            sum(n > 20 for n in functions), sum(n > 40 for n in functions),
            len(files), quantiles(files, 0.5, 0.9), folder,
            f"{lines.share(lines.comments):.1%}", f"{lines.share(lines.trailing):.1%}",
            f"{lines.share(lines.long):.1%}", percentile(lines.widths, 0.9), pairs
        ]

    def table(self):
        header = ["room", "functions", "p50/p90/p99/max", ">20", ">40", "files", "p50/p90/max",
                  "folder", "comments", "trailing", f">{LONG_LINE}", "width", "mutual"]
        rooms = collections.defaultdict(list)
        for path in self.paths:
            rooms[room_of(path)].append(path)
        rows = [header]
        for room, paths in sorted(rooms.items()):
            mutual = sum(room in (room_of(a), room_of(b)) for a, b in self.unit_pairs)
            rows.append(self.row(room, paths, mutual))
        return rows + [self.row("total", self.paths, len(self.unit_pairs))]

    def largest_classes(self, counts):
        largest = counts.most_common(10)
        return ", ".join(f"{self.tags.readable(name)} {count}" for name, count in largest)

    def print(self, functions_longer_than):
        print_table(self.table())
        print(LEGEND)
        folder, count = self.folders.most_common(1)[0]
        print(f"largest folder: {folder}, {count} production files "
              f"({self.with_tests[folder]} files with tests, data and sub-folders)")
        cycle_sizes = ", ".join(str(len(cycle)) for cycle in cycles(self.graph)) or "0"
        print(f"mutual includes: {len(self.unit_pairs)} pairs of {len(self.graph)} units; "
              f"cycles of {cycle_sizes} units; {len(self.folder_pairs)} pairs of sub-folders")
        print("most methods:", self.largest_classes(self.tags.methods))
        print("most fields:", self.largest_classes(self.tags.fields))
        for function in sorted(self.tags.functions, reverse=True):
            if functions_longer_than is not None and function.length > functions_longer_than:
                print(f"{function.length:4} {function.path}:{function.line} {function.name}")

    def violations(self):
        """One line for each limit that is exceeded."""
        p90 = percentile([f.length for f in self.tags.functions], 0.9)
        if p90 > FUNCTION_P90:
            yield f"the 90th percentile of function length is {p90} lines (limit {FUNCTION_P90})"
        yield from self.large_classes(self.tags.methods, CLASS_METHODS, "methods")
        yield from self.large_classes(self.tags.fields, CLASS_FIELDS, "fields")
        lines = self.lines_of(self.paths)
        if lines.share(lines.long) > LONG_LINE_SHARE:
            share = f"{lines.share(lines.long):.1%} (limit {LONG_LINE_SHARE:.0%})"
            yield f"lines of more than {LONG_LINE} characters: {share}"
        for folder, count in self.folders.most_common():
            if count > FOLDER_FILES:
                yield f"{folder} holds {count} production files (limit {FOLDER_FILES})"
        for a, b in self.folder_pairs:
            yield f"{a} and {b} include each other"

    def large_classes(self, counts, limit, noun):
        for name, count in counts.most_common():
            if count > limit and name.split("::")[-1] not in FREE_CLASSES:
                yield f"class {self.tags.readable(name)} has {count} {noun} (limit {limit})"


def quantiles(values, *points):
    return "/".join(str(percentile(values, p)) for p in points) + f"/{max(values, default=0)}"


def print_table(rows):
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for name, *figures in cells:
        right = [figure.rjust(width) for figure, width in zip(figures, widths[1:])]
        print("  ".join([name.ljust(widths[0])] + right))


def main():
    parser = argparse.ArgumentParser(description="Measures the structure of the code base.")
    parser.add_argument("--repo", default=ROOT)
    parser.add_argument("--functions", type=int, metavar="N",
                        help="list the functions of more than N lines")
    parser.add_argument("--check", action="store_true", help="fail when a limit is exceeded")
    options = parser.parse_args()
    if shutil.which("ctags") is None:
        sys.exit("universal-ctags is missing: scripts/install_dependencies.sh check")
    os.chdir(options.repo)
    structure = Structure()
    structure.print(options.functions)
    violations = list(structure.violations()) if options.check else []
    for violation in violations:
        print("error:", violation, file=sys.stderr)
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
