"""Rows of a run as lines, and their means. A row has an outcome and times in microseconds."""

import math
import statistics

RIGHT = ("ok", "ok64")
OUTCOMES = (*RIGHT, "left", "wrong", "failed", "time")


def ratio(row, column):
    """How many times as fast as a column; a failure counts as 1."""
    if row["outcome"] not in RIGHT or not row.get(column) or not row.get("atunner_us"):
        return 1.0
    return row[column] / row["atunner_us"]


def line_of(key, row):
    times = [row.get(name + "_us") for name in ("eager", "compile", "atunner")]
    shown = " ".join(f"{time / 1e3:9.3f}" if time else "        –" for time in times)
    facts = "; ".join(filter(None, [row.get("detail", ""), ", ".join(row.get("left", []))]))
    facts = facts.replace("\n", " ")[:300]
    return f"{key:6} {row['outcome']:6} {shown} {row.get('name', ''):44} {facts}".rstrip()


def summary(rows):
    counts = {each: sum(row["outcome"] == each for row in rows.values()) for each in OUTCOMES}
    print(f"{len(rows)} problems: " + ", ".join(f"{n} {each}" for each, n in counts.items() if n))
    if not any(row.get("atunner_us") for row in rows.values()):
        return
    for level in sorted({key.split("/")[0] for key in rows}):
        those = [row for key, row in rows.items() if key.startswith(level + "/")]
        means = (
            _mean([ratio(row, column) for row in those]) for column in ("eager_us", "compile_us")
        )
        print("level {}: {:.2f}× eager, {:.2f}× torch.compile".format(level, *means))


def _mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))
