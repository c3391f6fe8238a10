#!/usr/bin/env python3
"""Writes the tables of docs/counters.md from atunner/evidence/*.def.

    scripts/counters_document.py           # writes the file
    scripts/counters_document.py --check   # fails where it would change the file

A table stands between `<!-- table of NAME.def -->` and `<!-- end -->`; the rest of the page is
written by hand.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/counters.md"
SETS = {"kLaunch": "from the launch", "kFirst": "first", "kRest": "rest"}


def arguments(text):
    """The arguments of a macro call: commas in quotes or brackets separate nothing."""
    found, depth, quoted = [""], 0, False
    for c in text:
        if c == '"':
            quoted = not quoted
        elif not quoted:
            depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0 and not quoted:
            found.append("")
        else:
            found[-1] += c
    return [value(argument) for argument in found]


def value(argument):
    """A string literal without its quotes, neighbouring ones joined; anything else as it is."""
    argument = " ".join(argument.split())
    parts = re.findall(r'"([^"]*)"', argument)
    return "".join(parts) if argument.startswith('"') else argument


def entries(name):
    text = (ROOT / "atunner/evidence" / f"{name}.def").read_text(encoding="utf-8")
    text = "\n".join(line for line in text.splitlines() if not line.startswith("//"))
    return [arguments(call) for call in
            re.findall(r"^ATUNNER_\w+\((.*?)\)$(?=\s*(?:^ATUNNER|\Z))", text, re.S | re.M)]


def metric_cell(metric):
    if not metric:
        return "–"
    first = metric.split("|")[0]
    return "".join(part if part in "+/" else f"`{part}`" for part in re.split(r"([+/])", first))


def counter_rows():
    yield ("counter", "unit", "meaning", "set", "CUPTI and Nsight Compute", "virtual GPU")
    for _, name, unit, meaning, which, metric, counted in entries("counter"):
        yield (f"`{name}`", unit, meaning, SETS[which], metric_cell(metric),
               "–" if counted == "kUnknown" else "counted")


def bottleneck_rows():
    yield ("name", "meaning")
    for _, name, meaning in entries("bottleneck"):
        yield (f"`{name}`", meaning)


def threshold_rows():
    yield ("value", "unit", "from there on", "source")
    for _, number, unit, meaning, source in entries("threshold"):
        yield (number, unit, meaning, source)


TABLES = {"counter": counter_rows, "bottleneck": bottleneck_rows, "threshold": threshold_rows}


def table(name):
    rows = ["| " + " | ".join(row) + " |" for row in TABLES[name]()]
    return "\n".join([rows[0], "|" + "---|" * (rows[0].count("|") - 1)] + rows[1:])


def page(text):
    return re.sub(r"(<!-- table of (\w+)\.def -->\n).*?(<!-- end -->)",
                  lambda found: f"{found[1]}\n{table(found[2])}\n\n{found[3]}", text, flags=re.S)


def main():
    before = PAGE.read_text(encoding="utf-8")
    after = page(before)
    if "--check" in sys.argv[1:]:
        if before != after:
            sys.exit("docs/counters.md is old; run scripts/counters_document.py")
        return
    PAGE.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
