#!/usr/bin/env python3
"""Names the bottleneck of the kernels of bench/classifier and prints how often that is right.

    bench/classifier.py --target-gpu A100      # counted: on the virtual GPU
    bench/classifier.py                        # on the GPU of this machine: measured

A file's name is the bottleneck that its kernels show. `NAME_mended` does what NAME does without
it, so its gain proves the label: it must be at least 1.1. `expected` is the gain that `explain`
promises without the cause. `--jsonl FILE` appends one object a kernel.
"""

import argparse
import concurrent.futures
import json
import pathlib
import re
import statistics
import subprocess
import sys

FOLDER = pathlib.Path(__file__).parent / "classifier"
LEAST_GAIN = 1.1


def pairs():
    for source in sorted(FOLDER.glob("*.cu")):
        for name in re.findall(r"(\w+)_mended<<<", source.read_text()):
            yield source, name


def explain(args, source, kernel):
    command = [args.atunner, "explain", source, "--kernel", kernel, "--json"]
    if args.target_gpu:
        command += ["--target-gpu", args.target_gpu]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        return {"error": {"what": done.stderr.strip()[:300] or "no output"}}


def time_of(explanation):
    """Nanoseconds of the first launch, and where they come from."""
    counters = {c["name"]: c for c in explanation["launches"][0]["counters"]}
    time = counters["time"]
    return time["value"], "measured" if time["origin"] == "measured" else "predicted"


def judge(args, source, name):
    row = {"kernel": name, "label": source.stem.replace("_", "-")}
    with_cause, without = (explain(args, source, n) for n in (name, name + "_mended"))
    for one in (with_cause, without):
        if "launches" not in one:
            return row | {"error": one.get("error", {}).get("what", "not explained")}
    finding = with_cause["launches"][0]["findings"][0]
    before, origin = time_of(with_cause)
    after, _ = time_of(without)
    others = [f["bottleneck"] for f in with_cause["launches"][0]["findings"][1:]]
    return row | {"named": finding["bottleneck"], "expected": finding["gain"],
                  "gain": before / after, "times": origin, "before_ns": before, "after_ns": after,
                  "evidence": finding["evidence"], "others": others,
                  "not_measured": with_cause["not_measured"]}


def print_row(row):
    if "error" in row:
        print(f"{row['label']:16} {row['kernel']:22} {row['error'][:160]}", flush=True)
        return
    expected = f"{row['expected']:7.2f}" if row["expected"] else "      -"
    print(f"{row['label']:16} {row['kernel']:22} {row['named']:16} expected {expected}  gain "
          f"{row['gain']:7.2f} {row['times']}  {'' if is_right(row) else 'WRONG'}", flush=True)


def is_right(row):
    return row.get("named") == row["label"] and row["gain"] >= LEAST_GAIN


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--atunner", default="build/dev/faces/atunner")
    parser.add_argument("--target-gpu", help="counted for this GPU, also where there is one")
    parser.add_argument("--only", default="", help="labels or kernels, separated by commas")
    parser.add_argument("--jobs", type=int, default=1, help="kernels at the same time")
    parser.add_argument("--jsonl", help="file for the rows")
    args = parser.parse_args()
    only = set(filter(None, args.only.split(",")))
    chosen = [(source, name) for source, name in pairs()
              if not only or only & {name, source.stem, source.stem.replace("_", "-")}]
    rows = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for row in pool.map(lambda pair: judge(args, *pair), chosen):
            rows.append(row)
            print_row(row)
            if args.jsonl:
                with open(args.jsonl, "a") as file:
                    file.write(json.dumps(row) + "\n")
    right = [row for row in rows if is_right(row)]
    print(f"right {len(right)} of {len(rows)}, {100 * len(right) / max(1, len(rows)):.0f} %")
    errors = [abs(row["expected"] / row["gain"] - 1) for row in right if row["expected"]]
    if errors:
        print(f"expected gain: {100 * statistics.median(errors):.0f} % off in the median of "
              f"{len(errors)}")
    return 0 if len(right) >= 0.95 * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
