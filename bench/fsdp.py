#!/usr/bin/env python3
"""Exposed communication of sharded training (FSDP2, `fully_shard`) of GPT-2 on two GPUs.

    bench/fsdp.py [--rules FOLDER] [--atunner FILE] [--steps 6] [--turns 3] [--batch 8]
                  [--out FOLDER]

Each setting is timed in turns with all others, then traced for two steps. Prints for each:
milliseconds of a step (median), the scaling from one GPU to two (one GPU: the same model unsharded,
on both GPUs at once), and the milliseconds of a step in which a GPU only communicates, as
`atunner timeline` finds them in the traces (the longer of the two ranks). With --rules, the folder
that `atunner comm tune --out` wrote, two settings also run by its rules. Needs PyTorch 2.6 with
NCCL, and two GPUs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "faces/python"))
from atunner import _measure_parallel  # noqa: E402

PROGRAM = os.path.join(ROOT, "examples/system/gpt2_training.py")

HALF = {"param_dtype": "bfloat16", "reduce_dtype": "float32"}
SHARDS = {
    # As users begin: sharded block by block, weights gathered again for the backward pass.
    "fsdp": {},
    "fsdp keep": {"reshard_after_forward": False},
    "fsdp keep, prefetch 2": {"reshard_after_forward": False, "prefetch": 2},
    "fsdp keep, groups of 4": {"reshard_after_forward": False, "layers_per_group": 4},
    "fsdp bf16": HALF,
    "fsdp bf16 prefetch 2": {**HALF, "prefetch": 2},
    "fsdp bf16 keep": {**HALF, "reshard_after_forward": False},
    "fsdp bf16 keep, groups of 4": {
        **HALF, "reshard_after_forward": False, "layers_per_group": 4},
    "fsdp bf16 keep, reduce bf16": {
        **HALF, "reduce_dtype": "bfloat16", "reshard_after_forward": False},
}
RULED = ("fsdp", "fsdp keep", "fsdp bf16", "fsdp bf16 keep")


def variants(options, rules):
    quiet = {"NCCL_NVLS_ENABLE": "0"}
    base = {"micro_batch_size": options.batch}
    made = [{"name": "one GPU", "settings": base, "environment": quiet}]
    made += [{"name": name, "settings": {**base, "fully_shard": shard}, "environment": quiet}
             for name, shard in SHARDS.items()]
    if rules:
        tuned = {**quiet, "NCCL_TUNER_PLUGIN": os.path.join(rules, "libatunner_nccl.so"),
                 "NCCL_TUNER_CONFIG_FILE": os.path.join(rules, "nccl_tuner.conf")}
        made.append({"name": "tuned: one GPU", "settings": base, "environment": tuned})
        made += [{"name": "tuned: " + name, "settings": {**base, "fully_shard": SHARDS[name]},
                  "environment": tuned} for name in RULED]
    return made


def exposed_ms(atunner, folder):
    """Milliseconds of a step in which a GPU only communicates; nan if the traces tell nothing."""
    longest = float("nan")
    for rank in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        answer = subprocess.run([atunner, "timeline", os.path.join(folder, rank), "--json"],
                                capture_output=True, text=True, check=False)
        try:
            devices = json.loads(answer.stdout)["devices"]
        except (json.JSONDecodeError, KeyError):
            print(answer.stdout[-200:], answer.stderr[-200:])
            continue
        value = sum(device["exposed_communication"] for device in devices) / 2e6
        longest = value if longest != longest else max(longest, value)
    return longest


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rules", help="folder that `atunner comm tune --out` wrote")
    parser.add_argument("--atunner", default="build/atunner")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--batch", type=int, default=8, help="samples of each GPU")
    parser.add_argument("--seconds", type=float, default=200, help="for each set of processes")
    parser.add_argument("--out", default="fsdp-results")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    os.environ["PYTHONPATH"] = os.path.join(ROOT, "faces/python")
    begin = time.monotonic()
    traces = os.path.join(options.out, "traces")
    rules = os.path.abspath(options.rules) if options.rules else None
    results = _measure_parallel.measure({
        "program": PROGRAM, "gpus": 2, "steps": options.steps, "turns": options.turns,
        "seconds": options.seconds, "out": os.path.join(options.out, "results.json"),
        "trace": traces, "variants": variants(options, rules)})
    for name, found in results.items():
        if not found.get("ms"):
            print(f"{name:36} failed: {found.get('failed')}")
            continue
        alone = results["tuned: one GPU" if name.startswith("tuned") else "one GPU"]
        ms = statistics.median(found["ms"])
        one = statistics.median(alone.get("ms") or [float("nan")])
        folder = os.path.join(traces, _measure_parallel.file_name(name))
        found["exposed_ms"] = exposed_ms(options.atunner, folder)
        print(f"{name:36} {ms:8.2f} ms  scaling {100 * one / ms:5.1f} %  exposed "
              f"{found['exposed_ms']:6.2f} ms  peak {found['peak_bytes'] / 1e9:5.2f} GB  loss "
              f"{found['losses'][-1]:.4f}", flush=True)
    with open(os.path.join(options.out, "results.json"), "w", encoding="utf-8") as file:
        json.dump({"results": results}, file)
    print(f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
