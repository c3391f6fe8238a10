#!/usr/bin/env python3
"""Checks the text of the repository: links in Markdown, beginnings of comments, lengths of lines.

    scripts/check_text.py                    all checks, on all tracked files
    scripts/check_text.py links comments     only these
    scripts/check_text.py lines --changed    only files that differ from the branch main

Exit status 1 when something is found. Each finding is printed as FILE:LINE: MESSAGE.

* links: a relative link of a Markdown file must name a file or folder of the repository, and an
  anchor must name a heading of its file. Links to other hosts are not followed.
* comments: no comment begins with "Of ", because such a fragment names no subject.
* lines: no line has more than 100 characters. Tables, code blocks and lines that consist of one
  word or link cannot be wrapped and are left out in Markdown. C++ and CUDA are formatted by
  clang-format, which keeps literals whole: here only their comments are checked, and not in tests,
  whose literals hold expected sources. CMakeLists.txt files may hold long lists of files.
"""

import argparse
import os
import re
import sys
import unicodedata

from repository import ROOT, changed_files, read, tracked_files

WIDTH = 100
CODE = (".h", ".hpp", ".cpp", ".c", ".def", ".cu", ".cuh")
SCRIPTS = (".py", ".sh", ".cmake", "Makefile", ".yml")
# Test data is kept as it was written or generated. Sources of sanitizer tests are known by line
# numbers. Tables of test cases have one case a line.
DATA = re.compile(r"(^|/)(testdata|tests/data|tests/examples)/|vgpu/sanitizer/"
                  r"|^tests/torch/\w*cases\.py$|conformance/generate\.py$")
COMMENT_OF = re.compile(r"(//[/!]?<?|(?<!\S)#|/\*\*?) *Of\b")
LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+(?:\([^()]*\))?)(?:\s+\"[^\"]*\")?\)")
LINK_DEFINITION = re.compile(r"^\[[^\]]+\]:\s*(\S+)")


def read_lines(path):
    return read(path).splitlines()


def outside_code_blocks(lines):
    """Pairs (line number, text) of the lines of a Markdown file that are not in a fenced block."""
    in_block = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith(("```", "~~~")):
            in_block = not in_block
        elif not in_block:
            yield number, line


def anchor_of(heading):
    """The anchor that GitHub makes of a heading: `## A & B` becomes `a--b`."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    kept = (c for c in text if c in " -_" or unicodedata.category(c)[0] in "LN")
    return "".join(kept).replace(" ", "-")


def anchors(path):
    found = set()
    for _, line in outside_code_blocks(read_lines(path)):
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            base = name = anchor_of(heading.group(1))
            count = 0
            while name in found:  # a repeated heading gets a number
                count += 1
                name = f"{base}-{count}"
            found.add(name)
        found.update(re.findall(r"<a\s+(?:id|name)=\"([^\"]+)\"", line))
    return found


def broken_link(path, target):
    """The reason why `target`, as written in `path`, leads nowhere; None if it leads somewhere."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    name, _, anchor = target.partition("#")
    place = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
    if place.startswith(".."):
        return "leaves the repository"
    if not os.path.exists(place):
        return "does not exist"
    if anchor and place.endswith(".md") and anchor not in anchors(place):
        return f"has no heading '{anchor}'"
    return None


def check_links(paths):
    for path in paths:
        if not path.endswith(".md"):
            continue
        for number, line in outside_code_blocks(read_lines(path)):
            without_code = re.sub(r"`[^`]*`", "``", line)
            for target in LINK.findall(without_code) + LINK_DEFINITION.findall(without_code):
                reason = broken_link(path, target)
                if reason:
                    yield path, number, f"link to '{target}': it {reason}"


def check_comments(paths):
    for path in paths:
        if path.endswith(CODE + SCRIPTS) and not path.startswith("scripts/"):
            for number, line in enumerate(read_lines(path), 1):
                if COMMENT_OF.search(line):
                    yield path, number, "a comment begins with 'Of': give the sentence a subject"


def cannot_be_wrapped(text):
    """True for a table's row, and for a line that is one word or link, after a list's marker."""
    stripped = text.strip()
    without_marker = re.sub(r"^([-*+>]|\d+\.) +", "", stripped)
    as_one_word = LINK.sub("link", without_marker)
    return stripped.startswith("|") or " " not in as_one_word


def is_plain_comment(line):
    return line.lstrip().startswith("//") and "NOLINT" not in line


def long_lines(path):
    if not path.endswith((".md", *CODE, *SCRIPTS)):  # a picture is no text
        return []
    lines = read_lines(path)
    if path.endswith(".md"):
        wrapped = [pair for pair in outside_code_blocks(lines) if not cannot_be_wrapped(pair[1])]
    elif path.endswith(CODE):
        wrapped = [] if "_test." in path else [pair for pair in enumerate(lines, 1)
                                               if is_plain_comment(pair[1])]
    else:
        wrapped = enumerate(lines, 1)
    return [(number, len(line)) for number, line in wrapped if len(line) > WIDTH]


def check_lines(paths):
    for path in paths:
        for number, length in long_lines(path):
            yield path, number, f"{length} characters (limit {WIDTH})"


CHECKS = {"links": check_links, "comments": check_comments, "lines": check_lines}


def main():
    parser = argparse.ArgumentParser(description="Checks the text of the repository.")
    parser.add_argument("checks", nargs="*", help=", ".join(CHECKS) + "; without a name, all")
    parser.add_argument("--changed", action="store_true", help="only files that differ from main")
    options = parser.parse_args()
    for name in options.checks:
        if name not in CHECKS:
            parser.error(f"there is no check '{name}'")
    os.chdir(ROOT)
    paths = changed_files() if options.changed else tracked_files()
    paths = [path for path in paths if not DATA.search(path)]
    findings = 0
    for name in options.checks or CHECKS:
        for path, number, message in CHECKS[name](paths):
            findings += 1
            print(f"{path}:{number}: {message}")
    print(f"{len(paths)} files checked, {findings} findings")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
