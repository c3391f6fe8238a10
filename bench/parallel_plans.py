#!/usr/bin/env python3
"""Predicted and measured steps of parallel plans on two GPUs.

    bench/parallel_plans.py measure --program examples/system/gpt2_training.py --batch 8 --out FILE
    bench/parallel_plans.py compare FILE --model gpt2/model.json --comm tuned/table.json

`measure` times one GPU alone, with half the batch, too, and the plans below on two GPUs, and
writes all to FILE. `compare` needs no GPU: it gives `atunner parallel plan` what was measured on
ONE GPU and the table of collectives, and prints for each plan the predicted step beside the
measured one.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "faces/python"))
from atunner import _measure_parallel  # noqa: E402

VIEWS = {"gradient_as_bucket_view": True}
PLANS = {
    "data 2, 1 microbatch": {"DistributedDataParallel": VIEWS},
    "data 2, 2 microbatches": {"DistributedDataParallel": VIEWS, "passes": 2},
    "data 2 (ZeRO 1), 1 microbatch": {"DistributedDataParallel": VIEWS,
                                      "ZeroRedundancyOptimizer": True},
    "data 2 (ZeRO 2), 1 microbatch": {"fully_shard": {"reshard_after_forward": False}},
    "data 2 (ZeRO 2), 2 microbatches": {"fully_shard": {"reshard_after_forward": False},
                                        "passes": 2},
    "data 2 (ZeRO 3), 1 microbatch": {"fully_shard": {}},
    "data 2 (ZeRO 3), 2 microbatches": {"fully_shard": {}, "passes": 2},
    "data 2 (ZeRO 3), 1 microbatch, recomputed": {"fully_shard": {},
                                                  "checkpoint_layers": ["blocks"]},
}


def measure(options):
    quiet = {"NCCL_NVLS_ENABLE": "0"}
    alone = [{"name": f"one GPU, {samples}", "environment": quiet,
              "settings": {"micro_batch_size": samples}}
             for samples in (options.batch, options.batch // 2)]
    made = []
    for name, plan in PLANS.items():
        settings = dict(plan)
        passes = settings.pop("passes", 1)
        settings["micro_batch_size"] = options.batch // passes
        settings["gradient_accumulation_steps"] = passes
        made.append({"name": name, "settings": settings, "environment": quiet})
    os.environ["PYTHONPATH"] = os.path.join(ROOT, "faces/python")
    results = _measure_parallel.measure({
        "program": os.path.abspath(options.program), "gpus": 2, "steps": 5, "turns": 2,
        "seconds": options.seconds, "out": options.out, "trace": None,
        "parts": [each["name"] for each in alone], "variants": alone + made})
    for name, found in results.items():
        ms = statistics.median(found["ms"]) if found.get("ms") else float("nan")
        print(f"{name:44} {ms:8.2f} ms {found.get('failed', '')}", flush=True)


def profile_of(results):
    """What was measured on one GPU, as `parallel plan --measured` takes it."""
    parts = [found["parts"] for name, found in results.items() if "parts" in found]
    return {"measured": parts}


def compare(options):
    with open(options.file, encoding="utf-8") as file:
        results = json.load(file)["results"]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(profile_of(results), file)
        file.flush()
        command = [options.atunner, "parallel", "plan", options.model, "--gpus", options.gpus,
                   "--batch", str(2 * options.batch), "--measured", file.name, "--all", "--json"]
        command += ["--comm", options.comm] if options.comm else []
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        sys.exit(answer.stderr or answer.stdout)
    plans = json.loads(answer.stdout)
    predicted = {plan["text"]: plan["predicted"]["step_us"] / 1e3
                 for plan in [plans["plan"], *plans["others"]]}
    rows = []
    for name in PLANS:
        if name in predicted and results.get(name, {}).get("ms"):
            rows.append((name, predicted[name], statistics.median(results[name]["ms"])))
    for name, guess, ms in sorted(rows, key=lambda row: row[1]):
        print(f"{name:44} predicted {guess:8.2f} ms  measured {ms:8.2f} ms  "
              f"{100 * (guess / ms - 1):+6.1f} %")
    best = min(rows, key=lambda row: row[2])[0]
    first = [row[0] for row in sorted(rows, key=lambda row: row[1])[:3]]
    print(f"measured best: {best}; {'among' if best in first else 'NOT among'} the predicted "
          "first three")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    first = verbs.add_parser("measure")
    first.add_argument("--program", required=True)
    first.add_argument("--seconds", type=float, default=120)
    first.add_argument("--out", required=True)
    second = verbs.add_parser("compare")
    second.add_argument("file")
    second.add_argument("--model", required=True)
    second.add_argument("--comm")
    second.add_argument("--gpus", default="2xH200")
    second.add_argument("--atunner", default="build/atunner")
    for verb in (first, second):
        verb.add_argument("--batch", type=int, default=8, help="samples of each GPU")
    options = parser.parse_args()
    {"measure": measure, "compare": compare}[options.verb](options)


if __name__ == "__main__":
    main()
