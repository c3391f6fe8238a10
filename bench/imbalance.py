#!/usr/bin/env python3
"""Compares predictions with measurements where blocks do unequal work.

    python3 bench/imbalance.py --atunner build/atunner [--folder FOLDER]
    python3 bench/imbalance.py --atunner build/atunner --folder FOLDER --target-gpu H100

One calculation (bench/imbalance.cu) is spread over blocks in ways that a sample of the blocks does
not show: one block, or the one that arrives last, does all; every 64th does the work of 64; block b
does b times as much as block 1; blocks take chunks from a counter; the last does as much as all
others; and the same kernel with 10, 100 and 10 000 blocks. Each way exists for four kinds of work.

The first command measures on the GPU of this machine, after calibrating the model to it, and
predicts for the same card. FOLDER keeps the measurements and the calibration. The second predicts
what FOLDER holds once more. Columns: measured and predicted us, their ratio, and whether the
measured time is in the estimate's interval. The status is 1 if a ratio is beyond 1.2 or below 0.8.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

from prediction import measured_times, predict

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "imbalance.cu")
WORK = ["arithmetic", "loads", "modulo", "uneven"]
# Name: value of WAY, blocks.
WAYS = {
    "10 blocks": (0, 10),
    "100 blocks": (0, 100),
    "10 000 blocks": (0, 10000),
    "one block does all": (1, 1024),
    "last arrival does all": (2, 1024),
    "every 64th does 64": (3, 1024),
    "block b does b": (4, 1024),
    "queue of chunks": (5, 264),
    "last block does half": (6, 1024),
}
DESCRIPTION = """name = "imbalance_{name}"
source = "{source}"
constraints = ["{constraint}"]
check = [{{ n = 16384 }}]
[sizes]
n = 4194304
[parameters]
WAY = [0, 1, 2, 3, 4, 5, 6]
BLOCKS = [10, 100, 264, 1024, 10000]
KIND = [{kind}]
[default]
WAY = 0
BLOCKS = 10000
KIND = {kind}
[[argument]]
name = "x"
type = "float32"
shape = "n"
[[argument]]
name = "y"
type = "float32"
shape = "n"
role = "out"
[[launch]]
kernel = "imbalance"
grid = "BLOCKS"
block = 256
arguments = ["x", "y", "n: int32"]
"""


def describe(folder, work):
    """Writes the description of the kernel with this work; returns its path."""
    path = os.path.join(folder, f"imbalance_{WORK[work]}.toml")
    constraint = " or ".join(f"WAY == {w} and BLOCKS == {b}" for w, b in WAYS.values())
    with open(path, "w") as file:
        file.write(
            DESCRIPTION.format(
                name=WORK[work],
                kind=work,
                source=os.path.relpath(SOURCE, folder),
                constraint=constraint,
            )
        )
    return path


def measure(flags, path):
    """Measures all ways; the export of the run is beside the description."""
    store = path.replace(".toml", ".db")
    subprocess.run(
        [
            flags.atunner,
            "tune",
            path,
            *("--strategy", "random", "--budget", str(len(WAYS)), "--store", store),
            *("--out", path.replace(".toml", "_best")),
            *("--no-baselines", "--no-transfer", "--fresh", "--quiet"),
        ],
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
        sys.exit(f"{path}: no run to export")
    with open(path.replace(".toml", ".json"), "w") as file:
        file.write(exported)


def device_of(path):
    """The GPU on which a run was measured."""
    with open(path.replace(".toml", ".json")) as file:
        return json.load(file)["device"]


def ways_of(path):
    """(name, configuration as JSON text, measured ns) of each way that was measured."""
    for text, time in measured_times(path.replace(".toml", ".json")).items():
        blocks, _, way = json.loads(text)  # parameters are in the order of their names
        yield next(name for name, has in WAYS.items() if has == (way, blocks)), text, time


def rows(flags, path):
    """(name, measured us, predicted us, whether the interval holds the measured time)."""
    ways = list(ways_of(path))
    answer = predict(flags.atunner, flags.target_gpu, [path], [text for _, text, _ in ways])
    estimates = {
        json.dumps(p["configuration"]): p.get("estimate") for p in answer["predictions"]
    }
    for name, text, time in sorted(ways, key=lambda way: list(WAYS).index(way[0])):
        estimate = estimates[text]
        if estimate is None:
            yield name, time / 1e3, None, False
            continue
        inside = estimate["low_ns"] <= time <= estimate["high_ns"]
        yield name, time / 1e3, estimate["time_ns"] / 1e3, inside


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--atunner", default="build/atunner")
    parser.add_argument("--folder", help="keeps the measurements and the calibration")
    parser.add_argument("--target-gpu", help="predict what the folder holds, for this GPU")
    flags = parser.parse_args()
    folder = os.path.abspath(flags.folder or tempfile.mkdtemp(prefix="imbalance"))
    os.makedirs(folder, exist_ok=True)
    os.environ["XDG_DATA_HOME"] = folder  # where the calibration goes and is found
    paths = [describe(folder, work) for work in range(len(WORK))]
    if not flags.target_gpu:
        subprocess.run(
            [flags.atunner, "devices", "--probe", "--calibrate", "--quiet"],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        for path in paths:
            measure(flags, path)
        flags.target_gpu = device_of(paths[0])
    print("| work | way | measured us | predicted us | ratio | in interval |")
    print("|---|---|---|---|---|---|")
    outside = 0
    for work, path in zip(WORK, paths):
        for name, measured, predicted, inside in rows(flags, path):
            ratio = predicted / measured if predicted else float("nan")
            outside += not 0.8 <= ratio <= 1.2
            print(
                f"| {work} | {name} | {measured:.1f} | {predicted or float('nan'):.1f} "
                f"| {ratio:.2f} | {'yes' if inside else 'no'} |",
                flush=True,
            )
    print(f"\n{outside} ratios are outside of 0.8 to 1.2")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
