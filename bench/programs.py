#!/usr/bin/env python3
"""Compares predicted times of the kernels of whole programs with measured ones.

    python3 bench/programs.py --atunner build/atunner --measure LIST > measured
    python3 bench/programs.py --atunner build/atunner --predict LIST --target-gpu H100 > predicted
    python3 bench/programs.py --compare measured predicted

* LIST has one command line for each program, for example `./nbody 4096`.
* --measure runs each behind `atunner capture` on the GPU of this machine and prints what `atunner
  show --json` says, one line for each program.
* --predict runs each on the virtual GPU of the target: `atunner predict --json -- PROGRAM`.
* --compare joins the two by program and kernel and prints a table, largest error first.

The time of a kernel is the mean over its launches. A measured launch of less than --least
microseconds is left out: events resolve about one. Error: |predicted - measured| / measured.
"""
import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile


def answer(command, limit):
    """The JSON that the command prints last; None if it fails or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, timeout=limit, check=False)
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (subprocess.TimeoutExpired, json.JSONDecodeError, IndexError) as problem:
        print(f"{shlex.join(command)}: {problem!r}", file=sys.stderr)
        return None


def measure(args, program):
    with tempfile.TemporaryDirectory() as folder:
        capture = os.path.join(folder, "program.capture")
        answer([args.atunner, "capture", "--json", "--out", capture, "--"] + program, args.limit)
        return answer([args.atunner, "show", "--json", capture], args.limit)


def predict(args, program):
    return answer([args.atunner, "predict", "--json", "--target-gpu", args.target_gpu, "--"]
                  + program, args.limit)


def record(args, way, path):
    """Prints a line of JSON for each program of the list."""
    for line in pathlib.Path(path).read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        program = shlex.split(line)
        result = way(args, program)
        if result is not None and "kernels" in result:
            result["program"] = os.path.basename(program[0])
            print(json.dumps(result), flush=True)


def times(path, evidence):
    """(program, kernel): microseconds of a launch."""
    found = {}
    for line in pathlib.Path(path).read_text().splitlines():
        one = json.loads(line)
        for kernel in one["kernels"]:
            if kernel["seconds"] > 0 and kernel["evidence"] == evidence:
                key = os.path.basename(one["program"]), kernel["kernel"]
                found[key] = 1e6 * kernel["seconds"] / kernel["launches"]
    return found


def compare(args):
    measured = times(args.compare[0], "measured")
    predicted = times(args.compare[1], "predicted")
    rows = []
    for key in sorted(measured.keys() & predicted.keys()):
        if measured[key] >= args.least:
            error = abs(predicted[key] - measured[key]) / measured[key]
            rows.append((error, predicted[key] / measured[key], *key))
    rows.sort(reverse=True)
    print(f"{'measured us':>11} {'predicted us':>12} {'ratio':>6}  program: kernel")
    for _, ratio, program, kernel in rows:
        key = program, kernel
        print(f"{measured[key]:11.2f} {predicted[key]:12.2f} {ratio:6.2f}  {program}: "
              f"{kernel[:70]}")
    if not rows:
        sys.exit("no kernel was both measured and predicted")
    ratio = statistics.median(row[1] for row in rows)
    without_bias = statistics.median(abs(row[1] / ratio - 1) for row in rows)
    print(f"{len(rows)} kernels of {len({row[2] for row in rows})} programs: median error "
          f"{statistics.median(row[0] for row in rows):.1%}, median ratio {ratio:.2f}, median "
          f"error without that factor {without_bias:.1%}, "
          f"{sum(row[0] <= 0.25 for row in rows)} within 25 %")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--atunner", default="build/atunner")
    parser.add_argument("--target-gpu", default="H100")
    parser.add_argument("--limit", type=float, default=300, help="seconds for each command")
    parser.add_argument("--least", type=float, default=1, help="microseconds of a launch")
    todo = parser.add_mutually_exclusive_group(required=True)
    todo.add_argument("--measure", metavar="LIST")
    todo.add_argument("--predict", metavar="LIST")
    todo.add_argument("--compare", nargs=2, metavar=("MEASURED", "PREDICTED"))
    args = parser.parse_args()
    if args.compare:
        compare(args)
    elif args.measure:
        record(args, measure, args.measure)
    else:
        record(args, predict, args.predict)


if __name__ == "__main__":
    main()
