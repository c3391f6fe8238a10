#!/usr/bin/env python3
"""Training steps of parallel plans on two GPUs: measured, and beside what was predicted.

    bench/parallel_plans.py measure --program examples/system/gpt2_training.py --batch 32 \\
        --out FILE [--shards] [--rules FOLDER] [--traces FOLDER] [--atunner FILE]
    bench/parallel_plans.py compare FILE --model gpt2/model.json --batch 32 \\
        [--comm tuned/table.json] [--atunner FILE]

`measure` times one GPU alone, with half the batch, too, and the plans below on two GPUs, in turns,
and writes all to FILE. It prints for each: milliseconds of a step (median), the scaling from one
GPU to two, and with --traces the milliseconds of a step in which a GPU only communicates, as
`atunner timeline` finds them (the longer of the two ranks). --shards adds settings of
`fully_shard`; with --rules, the folder that `atunner comm tune --out` wrote, some run by its rules,
too.

`compare` needs no GPU: it gives `atunner parallel plan` what was measured on ONE GPU and the table
of collectives, and prints for each plan the predicted step beside the measured one.

`measure` needs PyTorch 2.6 or later with NCCL, and two GPUs.
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
KEEP = {"reshard_after_forward": False}
HALF = {"param_dtype": "bfloat16", "reduce_dtype": "float32"}
PLANS = {
    "data 2, 1 microbatch": {"DistributedDataParallel": VIEWS},
    "data 2, 2 microbatches": {"DistributedDataParallel": VIEWS, "passes": 2},
    "data 2 (ZeRO 1), 1 microbatch": {"DistributedDataParallel": VIEWS,
                                      "ZeroRedundancyOptimizer": True},
    "data 2 (ZeRO 2), 1 microbatch": {"fully_shard": KEEP},
    "data 2 (ZeRO 2), 2 microbatches": {"fully_shard": KEEP, "passes": 2},
    "data 2 (ZeRO 3), 1 microbatch": {"fully_shard": {}},
    "data 2 (ZeRO 3), 2 microbatches": {"fully_shard": {}, "passes": 2},
}
#: Weights stay after the forward pass, and four blocks share a collective.
SHARDS = {
    "ZeRO 2, groups of 4": {"fully_shard": {**KEEP, "layers_per_group": 4}},
    "ZeRO 2, bf16 weights, groups of 4": {"fully_shard": {**KEEP, **HALF, "layers_per_group": 4}},
}
RULED = ("data 2 (ZeRO 3), 1 microbatch", "ZeRO 2, groups of 4",
         "ZeRO 2, bf16 weights, groups of 4")
TRACED = ("data 2, 1 microbatch", "data 2 (ZeRO 2), 1 microbatch", *RULED)
HOSTS = {
    "host": {},
    "host, ZeRO 2": {"fully_shard": {**KEEP, "alone": True}},
    "host, ZeRO 3": {"fully_shard": {"alone": True}},
}
ALONE = "one GPU, "


def variants(options):
    quiet = {"NCCL_NVLS_ENABLE": "0"}
    made = [{"name": f"{ALONE}{samples}", "environment": quiet,
             "settings": {"micro_batch_size": samples}}
            for samples in (options.batch, options.batch // 2)]
    # The GPU needs little time for one sample: these steps take as long as the host does.
    made += [{"name": name, "environment": quiet, "settings": {"micro_batch_size": 1, **settings}}
             for name, settings in HOSTS.items()]
    plans = {**PLANS, **(SHARDS if options.shards else {})}
    for name, plan in plans.items():
        settings = dict(plan)
        passes = settings.pop("passes", 1)
        settings["micro_batch_size"] = options.batch // passes
        settings["gradient_accumulation_steps"] = passes
        made.append({"name": name, "settings": settings, "environment": quiet})
    if options.rules:
        rules = os.path.abspath(options.rules)
        tuned = {**quiet, "NCCL_TUNER_PLUGIN": os.path.join(rules, "libatunner_nccl.so"),
                 "NCCL_TUNER_CONFIG_FILE": os.path.join(rules, "nccl_tuner.conf")}
        made += [{**each, "name": "tuned: " + each["name"], "environment": tuned}
                 for each in made if each["name"] in RULED]
    return made


def exposed_ms(atunner, folder):
    """Milliseconds of a step in which a GPU only communicates; nan if the traces tell nothing."""
    longest = float("nan")
    for rank in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        answer = subprocess.run([atunner, "timeline", os.path.join(folder, rank), "--json"],
                                capture_output=True, text=True, check=False)
        try:
            devices = json.loads(answer.stdout)["traces"][0]["devices"]
        except (json.JSONDecodeError, KeyError, IndexError):
            print(f"{rank}: {answer.stderr[-200:]}")
            continue
        value = sum(device["exposed_communication"] for device in devices) / 2e6
        longest = value if longest != longest else max(longest, value)
    return longest


def measure(options):
    os.environ["PYTHONPATH"] = os.path.join(ROOT, "faces/python")
    results = _measure_parallel.measure({
        "program": os.path.abspath(options.program), "gpus": 2, "steps": 4, "turns": 2,
        "seconds": options.seconds, "out": options.out, "trace": options.traces,
        "parts": [f"{ALONE}{samples}" for samples in (options.batch, options.batch // 2)],
        "traced": [prefix + name for prefix in ("", "tuned: ") for name in TRACED],
        "variants": variants(options)})
    alone = results[f"{ALONE}{options.batch}"].get("ms") or [float("nan")]
    for name, found in results.items():
        if not found.get("ms"):
            print(f"{name:42} failed: {found.get('failed')}", flush=True)
            continue
        ms = statistics.median(found["ms"])
        line = f"{name:42} {ms:8.2f} ms  scaling {100 * statistics.median(alone) / ms:5.1f} %"
        if options.traces and name.removeprefix("tuned: ") in TRACED:
            folder = os.path.join(options.traces, _measure_parallel.file_name(name))
            found["exposed_ms"] = exposed_ms(options.atunner, folder)
            line += f"  exposed {found['exposed_ms']:6.2f} ms"
        print(f"{line}  peak {found['peak_bytes'] / 1e9:5.2f} GB  loss {found['losses'][-1]:.4f}",
              flush=True)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump({"results": results}, file)


def compare(options):
    with open(options.file, encoding="utf-8") as file:
        results = json.load(file)["results"]
    parts = [found["parts"] for found in results.values() if "parts" in found]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        host = {name: statistics.median(results[name]["ms"]) for name in HOSTS
                if results.get(name, {}).get("ms")}
        keys = {"host": "pass_ms", "host, ZeRO 2": "zero2_ms", "host, ZeRO 3": "zero3_ms"}
        measured = {"measured": parts, "host": {keys[name]: ms for name, ms in host.items()}}
        json.dump(measured, file)
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
    rows = [(name, predicted[name], statistics.median(results[name]["ms"]))
            for name in PLANS if name in predicted and results.get(name, {}).get("ms")]
    for name, guess, ms in sorted(rows, key=lambda row: row[1]):
        print(f"{name:42} predicted {guess:8.2f} ms  measured {ms:8.2f} ms  "
              f"{100 * (guess / ms - 1):+6.1f} %")
    best = min(rows, key=lambda row: row[2])[0]
    first = [row[0] for row in sorted(rows, key=lambda row: row[1])[:3]]
    print(f"measured best: {best}; {'among' if best in first else 'NOT among'} the predicted "
          "first three")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    first = verbs.add_parser("measure")
    first.add_argument("--program", required=True)
    first.add_argument("--seconds", type=float, default=120, help="for each set of processes")
    first.add_argument("--out", required=True)
    first.add_argument("--shards", action="store_true", help="also settings of fully_shard")
    first.add_argument("--rules", help="folder that `atunner comm tune --out` wrote")
    first.add_argument("--traces", help="folder for traces of two steps of each plan")
    second = verbs.add_parser("compare")
    second.add_argument("file")
    second.add_argument("--model", required=True)
    second.add_argument("--comm", help="table.json of `atunner comm tune`")
    second.add_argument("--gpus", default="2xH200")
    for verb in (first, second):
        verb.add_argument("--batch", type=int, default=32, help="samples of each GPU")
        verb.add_argument("--atunner", default="build/atunner")
    options = parser.parse_args()
    {"measure": measure, "compare": compare}[options.verb](options)


if __name__ == "__main__":
    main()
