#!/usr/bin/env python3
"""Compares rounds of ideas with a plain search, on the kernels of bench/naive.

    bench/rounds.py --atunner build/dev/faces/atunner --target-gpu A100 [--only gemm,row_sum]

Both may judge the same number of kernels. `search` tunes the parameters of the kernel as it is;
`rounds` also rewrites it. The gain is the time of the kernel as given over the time of the result.
Without the GPU the times are predicted.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).parent / "naive"


def run(command):
    """The JSON object that the command prints, and its seconds."""
    started = time.time()
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        result = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        result = {"error": {"what": done.stderr.strip() or "no output"}}
    return result, time.time() - started


def common(args, folder, name):
    return ["--target-gpu", args.target_gpu, "--out", folder / name, "--store",
            folder / (name + ".db"), "--no-baselines", "--json"]


def time_of(trial):
    measured, predicted = trial.get("measurement"), trial.get("estimate")
    if measured:
        return measured["median_ns"]
    return predicted["time_ns"] if predicted else None


def search(args, source, folder):
    """The time after a plain search; None without a correct kernel."""
    result, _ = run([args.atunner, "hardware-optimize", "--source", source, "--auto-tune",
                     "--budget", str(args.rounds * args.ideas * args.implementations),
                     *common(args, folder, source.stem + "-search")])
    return time_of(result.get("best") or {})


def rounds(args, source, folder):
    """Times of the first version and of the result, ideas that led to it, trials, seconds."""
    result, seconds = run([args.atunner, "optimize", source, "--rounds", str(args.rounds),
                           "--ideas", str(args.ideas), "--keep", str(args.keep),
                           "--implementations", str(args.implementations),
                           *common(args, folder, source.stem + "-rounds")])
    lineage = {idea["id"]: idea for idea in result.get("lineage", [])}
    if not lineage:
        return None, None, result.get("error", {}).get("what", "no correct kernel"), 0, seconds
    own = result["ideas"][0]["best_ns"]
    best = min(lineage.values(), key=lambda idea: idea["best_ns"])
    chain, at = [], best
    while at and at["parent"]:
        chain.append(at["title"].split(":")[0])
        at = lineage.get(at["parent"])
    ideas = ", ".join(reversed(chain)) or "-"
    return own, best["best_ns"], ideas, result.get("trials", 0), seconds


def mean(gains):
    return math.exp(sum(map(math.log, gains)) / len(gains)) if gains else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--atunner", default="build/dev/faces/atunner")
    parser.add_argument("--target-gpu", default="A100")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ideas", type=int, default=8)
    parser.add_argument("--implementations", type=int, default=2)
    parser.add_argument("--keep", type=float, default=0.25)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    searched, in_rounds = [], []
    print(f"{'kernel':16} {'as given':>10} {'search':>8} {'rounds':>8} {'trials':>7}  ideas")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for source in sorted(FOLDER.glob("*.cu")):
            if args.only and source.stem not in args.only.split(","):
                continue
            own, best, ideas, trials, _ = rounds(args, source, folder)
            found = search(args, source, folder)
            if own is None:
                print(f"{source.stem:16} {ideas}", flush=True)
                continue
            searched.append(own / (found or own))
            in_rounds.append(own / best)
            print(f"{source.stem:16} {own / 1e3:7.1f} us {searched[-1]:7.2f}x "
                  f"{in_rounds[-1]:7.2f}x {trials:7}  {ideas}", flush=True)
    print(f"geometric mean over {len(in_rounds)}: search {mean(searched):.2f}x, "
          f"rounds {mean(in_rounds):.2f}x")
    return 0 if in_rounds else 1


if __name__ == "__main__":
    sys.exit(main())
