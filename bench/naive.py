#!/usr/bin/env python3
"""Rewrites the kernels of bench/naive and prints what was gained, kernel by kernel.

    bench/naive.py --atunner build/dev/faces/atunner --target-gpu A100 [--only gemm,row_sum]

Without the GPU the times are predicted. `correct` means that the judge found the final kernel
right. `--limit 140` begins no other kernel after 140 seconds; `--budget 30,5s` gives each kernel 30
trials or five seconds. `--only` also gives the order.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).parent / "naive"


def rewrite(args, source, folder):
    command = [args.atunner, "hardware-optimize", "--source", source, "--rewrite", "--target-gpu",
               args.target_gpu, "--budget", args.budget, "--out", folder / source.stem,
               "--store", folder / "store.db", "--no-baselines", "--json"]
    started = time.time()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.time() - started
    try:
        return json.loads(done.stdout.splitlines()[-1]), seconds
    except (IndexError, json.JSONDecodeError):
        return {"error": {"what": done.stderr.strip() or "no output"}}, seconds


def row(name, result, seconds):
    """One line of the table, and the gain; None without a correct kernel."""
    record = result.get("rewriting")
    if not record or not record["own_ns"] or not record["best_ns"]:
        what = result.get("error", {}).get("what") or result.get("refused") or "no correct kernel"
        return f"{name:16} {seconds:6.0f} s  {what}", None
    gain = record["own_ns"] / record["best_ns"]
    kept = ", ".join((step["rewrite"] + " " + step["detail"]).strip() for step in record["steps"])
    return (f"{name:16} {seconds:6.0f} s {record['own_ns'] / 1e3:10.1f} us "
            f"{record['best_ns'] / 1e3:10.1f} us {gain:7.2f}x  {kept or '-'}"), gain


def chosen(args):
    if args.only:
        return [args.folder / f"{name}.cu" for name in args.only.split(",")]
    return sorted(args.folder.glob("*.cu"))


def note(args, source, seconds, gain, result):
    if not args.jsonl:
        return
    record = result.get("rewriting") or {}
    kept = {key: record.get(key) for key in ("own_ns", "best_ns", "times")}
    kept |= {"ideas": [{key: idea.get(key) for key in ("rewrite", "detail", "status", "gain",
                                                       "expected_gain", "note")}
                       for idea in record.get("ideas", [])]}
    with open(args.jsonl, "a") as file:
        file.write(json.dumps({"kernel": source.stem, "seconds": round(seconds, 2), "gain": gain,
                               "error": result.get("error"), "refused": result.get("refused"),
                               "trials": result.get("trials")} | kept) + "\n")


def errors_of(result):
    """How far the expected gains of the kept ideas were from the gains that came of them."""
    ideas = (result.get("rewriting") or {}).get("ideas", [])
    return [abs(idea["expected_gain"] / idea["gain"] - 1) for idea in ideas
            if idea["status"] == "kept" and idea["expected_gain"] and idea["gain"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--atunner", default="build/dev/faces/atunner")
    parser.add_argument("--target-gpu", default="A100")
    parser.add_argument("--folder", type=pathlib.Path, default=FOLDER)
    parser.add_argument("--budget", default="40")
    parser.add_argument("--only", default="")
    parser.add_argument("--jsonl", help="file to which each kernel's result is appended")
    parser.add_argument("--limit", type=float, help="seconds")
    parser.add_argument("--keep", help="folder for the artifacts")
    args = parser.parse_args()
    gains, errors, skipped, kinds = [], [], [], set()
    started = time.time()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(args.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for source in chosen(args):
            if args.limit and time.time() - started > args.limit:
                skipped.append(source.stem)
                continue
            result, seconds = rewrite(args, source, folder)
            text, gain = row(source.stem, result, seconds)
            note(args, source, seconds, gain, result)
            kinds.add((result.get("rewriting") or {}).get("times", "no time"))
            print(text, flush=True)
            gains.append(gain)
            errors += errors_of(result)
    right = [gain for gain in gains if gain]
    if right:
        mean = math.exp(sum(map(math.log, right)) / len(right))
        print(f"correct {len(right)} of {len(gains)}, faster by 30 % "
              f"{sum(gain >= 1.3 for gain in right)}, slower {sum(gain < 1 for gain in right)}, "
              f"geometric mean {mean:.2f}x ({', '.join(sorted(kinds))})")
    if errors:
        print(f"expected gain of {len(errors)} kept ideas: "
              f"{statistics.median(errors):.0%} off in the median")
    if skipped:
        print("no time was left for " + ", ".join(skipped))
    return 0 if len(right) == len(gains) else 1


if __name__ == "__main__":
    sys.exit(main())
