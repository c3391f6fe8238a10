#!/usr/bin/env python3
"""Compares predictions of the virtual GPU with measurements, in one table.

    python3 bench/prediction.py --atunner build/atunner --measure 240 [--seed S] [--gpus 2]
        [--measured FOLDER] [--kernels softmax gemm]
    python3 bench/prediction.py --atunner build/atunner --measured FOLDER [--limit N]
        [--kernels softmax gemm]
    python3 bench/prediction.py --measured FOLDER --predicted FOLDER
    python3 bench/prediction.py --atunner build/atunner --recorded CACHE=KERNEL ... --limit N
        [--where CONDITION]

* --measure N: the GPUs of this machine calibrate the model, then measure N random configurations of
  each kernel, while the processor predicts those that are measured. FOLDER keeps the results.
* --measured FOLDER without --measure: FOLDER holds NAME.json for each task in TASKS below, written
  by `atunner export RUN --format json` after a run on the target GPU. The run should use a strategy
  that sees the whole space, like random. Kernels of users are those of examples/kernels.
* --recorded CACHE=KERNEL: CACHE is a space that Kernel Tuner recorded (.json or .json.gz), KERNEL
  the T1 file of its kernel with the same parameters in the same order. --limit configurations are
  drawn at random among those for which CONDITION holds (a Python expression, for example `use_shmem
  == 1`). They are predicted for the GPU that the cache names, unless --target-gpu names one.
* --predicted FOLDER: FOLDER holds predicted_NAME.json or .json.gz, which `atunner predict --configs
  … --json` printed; nothing is predicted anew.

Every measured configuration is predicted by `atunner predict`; no candidate is verified.

Columns: Spearman's rank correlation; the best measured time among the five best predictions over
the best of all; the median of |predicted - measured| / measured; the median of predicted /
measured; and the median error after dividing all predictions by that, which removes the effect of a
clock that differs from the profile's. Spaces whose median time is less than 1.3 times their best
are marked: their ranks are noise, so only the top 5 count.
"""
import argparse
import concurrent.futures
import gzip
import json
import os
import queue
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

KERNELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "kernels")
# name: class, arguments of `predict`, whether the model was developed on it.
TASKS = {
    "softmax": ("memory-bound", ["--operator", "softmax", "--input-shape", "8192,4096"], True),
    "layernorm": ("memory-bound", ["--operator", "layernorm", "--input-shape", "32768,1024"], True),
    "softmax_small": (
        "latency-bound",
        ["--operator", "softmax", "--input-shape", "256,1000"],
        True,
    ),
    "matmul_bf16": (
        "tensor-core",
        ["--operator", "matmul", "--dtype", "bfloat16", "--input-shape", "2048,2048,2048"],
        True,
    ),
    "matmul_f32": (
        "compute-bound",
        ["--operator", "matmul", "--input-shape", "1024,1024,1024"],
        False,
    ),
    "conv_bf16": (
        "tensor-core",
        [
            "--operator",
            "conv2d",
            "--dtype",
            "bfloat16",
            "--input-shape",
            "32,28,28,128",
            "128,3,3",
            "--attr",
            "padding=1",
        ],
        True,
    ),
    "conv_f16": (
        "tensor-core",
        [
            "--operator",
            "conv2d",
            "--dtype",
            "float16",
            "--input-shape",
            "16,56,56,64",
            "64,3,3",
            "--attr",
            "padding=1",
        ],
        False,
    ),
    "matmul_f16": (
        "tensor-core",
        ["--operator", "matmul", "--dtype", "float16", "--input-shape", "1024,4096,2048"],
        False,
    ),
    "gemm": ("latency-bound", ["gemm.json"], True),
    "convolution": ("stencil", ["convolution.json"], True),
    "hotspot": ("stencil", ["hotspot.json"], True),
    "pnpoly": ("irregular", ["pnpoly.json"], True),
    "dedispersion": ("irregular", ["dedispersion.json"], True),
    "nbody": ("compute-bound", ["nbody.json"], True),
    "sum_columns": (
        "columns",
        ["--operator", "sum", "--input-shape", "16384,4096", "--attr", "axis=0"],
        False,
    ),
    "cumsum": ("scan", ["--operator", "cumsum", "--input-shape", "8192,4096"], False),
    "max_pool": (
        "pooling",
        [
            "--operator",
            "max_pool",
            "--input-shape",
            "64,64,112,112",
            "--attr",
            "size=3",
            "stride=2",
            "padding=1",
        ],
        False,
    ),
    "attention": (
        "attention",
        ["--operator", "flash_attention", "--dtype", "bfloat16", "--input-shape", "4,16,2048,64"],
        False,
    ),
    "attention_paged": (
        "attention",
        [
            "--operator",
            "attention_paged",
            "--dtype",
            "bfloat16",
            "--input-shape",
            "32,32,128",
            "8192,16,8,128",
            "32,128",
        ],
        False,
    ),
    "batch_norm": ("columns", ["--operator", "batch_norm", "--input-shape", "64,128,56,56"], False),
    "transpose": ("transpose", ["--operator", "transpose", "--input-shape", "8192,4096"], False),
    "embedding": (
        "irregular",
        ["--operator", "embedding", "--input-shape", "50257,768", "32768"],
        False,
    ),
    "scatter_add": (
        "irregular",
        ["--operator", "scatter_add", "--input-shape", "32768,1024", "16384"],
        False,
    ),
    "int8_linear": (
        "tensor-core",
        ["--operator", "int8_linear", "--input-shape", "2048,4096", "4096,4096"],
        False,
    ),
    "int4_linear": (
        "weights",
        [
            "--operator",
            "int4_linear",
            "--dtype",
            "bfloat16",
            "--input-shape",
            "16,4096",
            "4096,4096",
        ],
        False,
    ),
    "matmul_decode": (
        "tensor-core",
        ["--operator", "matmul", "--dtype", "bfloat16", "--input-shape", "16,4096,4096"],
        False,
    ),
    "layernorm_backward": (
        "stages",
        ["--operator", "layernorm_backward", "--input-shape", "8192,4096"],
        False,
    ),
    "rms_norm": (
        "memory-bound",
        ["--operator", "rms_norm", "--dtype", "bfloat16", "--input-shape", "16384,4096"],
        False,
    ),
    "gelu": (
        "pointwise",
        ["--operator", "gelu", "--dtype", "bfloat16", "--input-shape", "8192,8192"],
        False,
    ),
    "cross_entropy": (
        "stages",
        ["--operator", "cross_entropy", "--input-shape", "4096,32000"],
        False,
    ),
    "topk": (
        "irregular",
        ["--operator", "topk", "--input-shape", "4096,4096", "--attr", "k=8"],
        False,
    ),
    "conv_f32": (
        "compute-bound",
        ["--operator", "conv", "--input-shape", "16,64,56,56", "64,64,3,3", "--attr", "padding=1"],
        False,
    ),
    "conv_depthwise": (
        "stencil",
        [
            "--operator",
            "conv",
            "--dtype",
            "bfloat16",
            "--input-shape",
            "32,128,56,56",
            "128,1,3,3",
            "--attr",
            "groups=128",
            "padding=1",
        ],
        False,
    ),
    "conv_transpose": (
        "tensor-core",
        [
            "--operator",
            "conv_transpose",
            "--dtype",
            "bfloat16",
            "--input-shape",
            "16,128,28,28",
            "128,64,3,3",
        ],
        False,
    ),
    "attention_masked": (
        "attention",
        ["--operator", "attention_masked", "--dtype", "bfloat16", "--input-shape", "4,16,1024,64"],
        False,
    ),
    "adamw": ("pointwise", ["--operator", "adamw", "--input-shape", "8192,4096"], False),
    "rope": (
        "pointwise",
        ["--operator", "rope", "--dtype", "bfloat16", "--input-shape", "8,32,2048,128"],
        False,
    ),
    "sort": ("irregular", ["--operator", "sort", "--input-shape", "4096,4096"], False),
    "separable_conv": (
        "stages",
        [
            "--operator",
            "separable_conv",
            "--dtype",
            "bfloat16",
            "--input-shape",
            "32,128,56,56",
            "128,1,3,3",
            "--attr",
            "padding=1",
            "channels=128",
        ],
        False,
    ),
    "cosine_loss": ("stages", ["--operator", "cosine_loss", "--input-shape", "16384,4096"], False),
    "reduce": ("memory-bound", ["reduce.toml"], False),
}
FLAT = 1.3


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    first = 0
    while first < len(order):
        last = first
        while last + 1 < len(order) and values[order[last + 1]] == values[order[first]]:
            last += 1
        for i in range(first, last + 1):
            result[order[i]] = (first + last) / 2
        first = last + 1
    return result


def spearman(a, b):
    return (
        statistics.correlation(ranks(a), ranks(b)) if len(set(a)) > 1 and len(set(b)) > 1 else 0.0
    )


def measured_times(path):
    """Maps a configuration (as JSON text) to its measured ns. Failed trials are left out."""
    with open(path) as file:
        trials = json.load(file)["trials"]
    clocks = [
        t["measurement"]["sm_mhz"]
        for t in trials
        if t.get("measurement") and "sm_mhz" in t["measurement"]
    ]
    if clocks and min(clocks) < max(clocks):
        print(
            f"{path}: measured at {min(clocks):.0f} to {max(clocks):.0f} MHz, which no model "
            "predicts",
            file=sys.stderr,
        )
    return {
        json.dumps(t["configuration"]): t["measurement"]["median_ns"]
        for t in trials
        if t.get("measurement")
    }


def recorded_times(path, limit, condition):
    """As measured_times, for a space that Kernel Tuner recorded, with times in ms; and the name of
    its GPU."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        space = json.load(file)
    entries = [
        e
        for _, e in sorted(space["cache"].items())
        if isinstance(e["time"], (int, float)) and eval(condition, {}, e)
    ]
    random.Random(1).shuffle(entries)
    keys = space["tune_params_keys"]
    return {json.dumps([e[key] for key in keys]): e["time"] * 1e6 for e in entries[:limit]}, space[
        "device_name"
    ]


def located(arguments):
    return [os.path.join(KERNELS, a) if a.endswith((".json", ".toml")) else a for a in arguments]


def measure(flags, name, gpu):
    """Measures random configurations of a space on a GPU, into the folder."""
    arguments = located(TASKS[name][1])
    store = os.path.join(flags.measured, name + ".db")
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": str(gpu)}
    begun = time.monotonic()
    subprocess.run(
        [
            flags.atunner,
            "optimize" if arguments[0].startswith("--") else "tune",
            *arguments,
            "--strategy",
            "random",
            "--budget",
            str(flags.measure),
            "--seed",
            str(flags.seed),
            "--no-baselines",
            "--no-transfer",
            "--fresh",
            "--quiet",
            "--store",
            store,
            "--out",
            os.path.join(flags.measured, name + "_best"),
        ],
        env=environment,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    exported = subprocess.run(
        [flags.atunner, "export", "last", "--format", "json", "--store", store],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    ).stdout
    if not exported.startswith("{"):
        print(f"{name}: no run to export", file=sys.stderr)
        return False
    with open(os.path.join(flags.measured, name + ".json"), "w") as file:
        file.write(exported)
    print(f"{name}: measured on GPU {gpu} in {time.monotonic() - begun:.0f} s", file=sys.stderr)
    return True


def predict_into(flags, name):
    times = list(measured_times(os.path.join(flags.measured, name + ".json")))[: flags.limit]
    with open(os.path.join(flags.measured, f"predicted_{name}.json"), "w") as file:
        json.dump(predict(flags.atunner, flags.target_gpu, TASKS[name][1], times), file)


def measure_all(flags):
    """Measures every space on one of the GPUs. Predictions, which need no GPU, run while the next
    are measured."""
    os.environ["XDG_DATA_HOME"] = os.path.abspath(
        flags.measured
    )  # where the calibration goes and is found
    subprocess.run(
        [flags.atunner, "devices", "--probe", "--calibrate", "--quiet"],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    names = queue.Queue()
    for name in flags.kernels:
        names.put(name)
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as predictors:

        def work(gpu):
            while True:
                try:
                    name = names.get_nowait()
                except queue.Empty:
                    return
                if measure(flags, name, gpu):
                    predictors.submit(predict_into, flags, name)

        workers = [threading.Thread(target=work, args=(gpu,)) for gpu in range(flags.gpus)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


def predict(atunner, target, arguments, configurations):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write("[" + ",".join(configurations) + "]")
        file.flush()
        done = subprocess.run(
            [
                atunner,
                "predict",
                *located(arguments),
                "--target-gpu",
                target,
                "--configs",
                file.name,
                "--json",
            ],
            stdout=subprocess.PIPE,
            check=False,
        )
    answer = json.loads(done.stdout)
    if "error" in answer:
        sys.exit(f"predict: {answer['error']['what']}")
    return answer


def stored(folder, name):
    """The stored answer of `predict` for a space, or None."""
    for path, reader in (
        (f"predicted_{name}.json", open),
        (f"predicted_{name}.json.gz", gzip.open),
    ):
        if os.path.exists(os.path.join(folder, path)):
            with reader(os.path.join(folder, path), "rt") as file:
                return json.load(file)
    return None


def row(name, task, times, answer):
    kind, _, developed = task
    pairs = [
        (times[json.dumps(p["configuration"])], p["estimate"]["time_ns"])
        for p in answer["predictions"]
        if "estimate" in p and json.dumps(p["configuration"]) in times
    ]
    missing = sum("estimate" not in p for p in answer["predictions"])
    measured, predicted = [list(column) for column in zip(*pairs)]
    five = sorted(range(len(pairs)), key=predicted.__getitem__)[:5]
    ratio = statistics.median(p / m for m, p in pairs)
    return {
        "kernel": name,
        "class": kind,
        "n": len(pairs),
        "missing": missing,
        "developed": developed,
        "flat": statistics.median(measured) < FLAT * min(measured),
        "spearman": spearman(measured, predicted),
        "regret": min(measured[i] for i in five) / min(measured) - 1,
        "error": statistics.median(abs(p - m) / m for m, p in pairs),
        "ratio": ratio,
        "error_scaled": statistics.median(abs(p / ratio - m) / m for m, p in pairs),
        "rate": len(pairs) / answer["seconds"],
        "calibration": answer.get("calibration", ""),
    }


def spaces(flags):
    """Name, task, measured times and GPU of the spaces that the flags select."""
    for name in flags.kernels if flags.measured else []:
        path = os.path.join(flags.measured, name + ".json")
        if os.path.exists(path):
            yield name, TASKS[name], dict(
                list(measured_times(path).items())[: flags.limit]
            ), flags.target_gpu or "H200"
    for pair in flags.recorded:
        path, kernel = pair.split("=")
        times, device = recorded_times(path, flags.limit, flags.where)
        name = os.path.basename(path).removesuffix(".gz").removesuffix(".json")
        yield name, (
            "recorded",
            [os.path.abspath(kernel)],
            False,
        ), times, flags.target_gpu or device


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--atunner", default="build/atunner")
    parser.add_argument(
        "--measure",
        type=int,
        metavar="N",
        help="so many configurations of each kernel here and now",
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="of the configurations that --measure draws"
    )
    parser.add_argument("--gpus", type=int, default=1, help="that share the kernels of --measure")
    parser.add_argument("--measured", help="folder of exports")
    parser.add_argument("--predicted", help="folder of predictions of what is in --measured")
    parser.add_argument(
        "--recorded",
        nargs="*",
        default=[],
        metavar="CACHE=KERNEL",
        help="Kernel Tuner's caches, and kernels as T1",
    )
    parser.add_argument(
        "--where", default="True", metavar="CONDITION", help="of recorded configurations"
    )
    parser.add_argument(
        "--target-gpu", help="default: H200; of recorded spaces the one that they name"
    )
    parser.add_argument("--limit", type=int, default=None, help="configurations per kernel")
    parser.add_argument("--kernels", nargs="*", default=list(TASKS))
    flags = parser.parse_args()
    if flags.measure:
        flags.target_gpu = flags.target_gpu or "H200"
        flags.measured = flags.predicted = flags.measured or tempfile.mkdtemp(prefix="prediction")
        os.makedirs(flags.measured, exist_ok=True)
        measure_all(flags)
    print(
        "| kernel | class | configurations | Spearman | best of top 5 vs. best | median error | "
        "predicted / measured | error by that ratio | predictions/s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    rows = []
    for name, task, times, target in spaces(flags):
        answer = (
            stored(flags.predicted, name)
            if flags.predicted
            else predict(flags.atunner, target, task[1], list(times))
        )
        if answer is None:
            continue
        r = row(name, task, times, answer)
        rows.append(r)
        star = "" if r["developed"] else " (unseen)"
        lost = f" ({r['missing']} not predicted)" if r["missing"] else ""
        flat = " (flat)" if r["flat"] else ""
        print(
            f"| {name}{star} | {r['class']} | {r['n']}{lost} | {r['spearman']:.3f}{flat} | +"
            f"{100 * r['regret']:.1f} % "
            f"| {100 * r['error']:.1f} % | {r['ratio']:.2f} "
            f"| {100 * r['error_scaled']:.1f} % | {r['rate']:.1f} |",
            flush=True,
        )
    for label, chosen in (
        ("all", rows),
        ("developed on", [r for r in rows if r["developed"]]),
        ("unseen", [r for r in rows if not r["developed"]]),
    ):
        if not chosen:
            continue
        ranked = [r["spearman"] for r in chosen if not r["flat"]]
        correlation = f"{statistics.mean(ranked):.3f}" if ranked else "–"
        print(
            f"| **{label}** | | {sum(r['n'] for r in chosen)} | {correlation} (mean) "
            f"| +{100 * max(r['regret'] for r in chosen):.1f} % (worst) "
            f"| {100 * statistics.mean(r['error'] for r in chosen):.1f} % (mean) | | | |"
        )
    if rows:
        print(f"\ntime model: {rows[0]['calibration']}")


if __name__ == "__main__":
    main()
