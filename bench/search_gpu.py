"""Compares the default search with random search on the GPU of this machine, on a kernel whose
optimum is known.

One kernel of examples/kernels at a larger size (convolution: 1100 valid configurations, nbody:
1568) is first tuned exhaustively, which gives the optimum and the time of every configuration. Then
each strategy tunes it with the same budget and several seeds. Every run has its own cache and
store, so it compiles anew. The exhaustive run decides whether a configuration is near the optimum,
so that no strategy profits from a lucky measurement.

  trials/s    trials of the run / time from its first answer to its last
  judging     share of the search's time in which a candidate is verified, timed, or handed over
  again       share of that time in which a leader is measured once more, because no new candidate
              is compiled
  busy        GPU utilisation as nvidia-smi reports it, median over the search
  to 5 %      trials and seconds until a configuration within 5 % of the optimum was found; seconds
              include the baseline; a run that finds none counts as its whole budget (and in
              `missed`)

The second table divides the time of a search, in ms per trial; times of devices overlap with
others.

Usage: python3 bench/search_gpu.py --atunner build/atunner [--trials 80] [--seeds 6]
           [--kernel nbody] [--size N] [--target-gpu auto]
"""
import argparse
import json
import math
import os
import pathlib
import sqlite3
import statistics
import subprocess
import tempfile
import time

KERNELS = pathlib.Path(__file__).resolve().parent.parent / "examples" / "kernels"


def resize_convolution(task, size):
    """Sets the size to size x size points, with blocks whose width is a multiple of a warp."""
    for parameter in task["ConfigurationSpace"]["TuningParameters"]:
        if parameter["Name"] == "block_size_x":
            parameter["Values"] = "[32, 64, 96, 128]"
            parameter["Default"] = 32
    kernel = task["KernelSpecification"]
    kernel["ProblemSize"] = [size, size]
    for argument in kernel["Arguments"]:
        if argument["Name"] in ("width", "height"):
            argument["FillValue"] = size


def resize_nbody(task, size):
    """Sets the number of bodies to `size`; the example has 1000."""
    kernel = task["KernelSpecification"]
    kernel["GlobalSize"]["X"] = kernel["GlobalSize"]["X"].replace("1000", str(size))
    for argument in kernel["Arguments"]:
        if "Size" in argument:
            argument["Size"] = argument["Size"] // 1000 * size
        if argument["Name"] == "n":
            argument["FillValue"] = size


RESIZE = {
    "convolution": (resize_convolution, 4096),
    "nbody": (resize_nbody, 65536),
}  # and the size by default


def write_task(folder, kernel, size):
    task = json.loads((KERNELS / f"{kernel}.json").read_text())
    RESIZE[kernel][0](task, size)
    (folder / f"{kernel}.json").write_text(json.dumps(task))
    (folder / f"{kernel}.cu").write_text((KERNELS / f"{kernel}.cu").read_text())
    return folder / f"{kernel}.json"


class Utilisation:
    """Runs nvidia-smi in the background; gives no value if there is none."""

    def __enter__(self):
        self.samples = []
        try:
            self.process = subprocess.Popen(
                [
                    "nvidia-smi",
                    "--query-gpu=utilization.gpu",
                    "--format=csv,noheader,nounits",
                    "-lms",
                    "200",
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        except FileNotFoundError:
            self.process = None
        return self

    def __exit__(self, *_):
        if self.process is None:
            return
        self.process.terminate()
        out, _ = self.process.communicate()
        self.samples = [float(line) for line in out.split() if line.strip().isdigit()]

    def median(self):
        """The median over the run without the start of the processes, when the device is idle."""
        working = self.samples[
            next((i for i, value in enumerate(self.samples) if value > 0), len(self.samples)) :
        ]
        return statistics.median(working) if working else math.nan


def tune(arguments, task, strategy, trials, seed, limit):
    """Runs atunner once. Returns its trials with the time of each answer, and the figures of the
    store."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # NVRTC and the driver remember compilations as well.
        environment = dict(
            os.environ,
            XDG_CACHE_HOME=str(folder / "cache"),
            XDG_DATA_HOME=str(folder / "data"),
            HOME=str(folder),
            CUDA_CACHE_PATH=str(folder / "nv"),
        )
        command = [
            arguments.atunner,
            "tune",
            str(task),
            "--strategy",
            strategy,
            "--budget",
            f"{trials},{limit:.0f}s",
            "--seed",
            str(seed),
            "--explain",
            "--store",
            str(folder / "store.db"),
            "--out",
            str(folder / "out"),
            "--target-gpu",
            arguments.target_gpu,
        ]
        start = time.monotonic()
        answered = []
        with Utilisation() as utilisation:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
            )
            lines = []
            for line in process.stderr:
                lines.append(line)
                if line.startswith("trial "):
                    answered.append(time.monotonic() - start)
            process.stdout.read()
            code = process.wait()
        if code not in (0, 1) or not answered:
            raise SystemExit(f"{' '.join(command)}\n{''.join(lines[-20:])}")
        store = sqlite3.connect(folder / "store.db")
        bodies = [
            json.loads(row[0]) for row in store.execute("SELECT body FROM trials ORDER BY number")
        ]
        summary = json.loads(store.execute("SELECT summary FROM runs").fetchone()[0])
        store.close()
    return {
        "answered": answered,
        "trials": bodies,
        "summary": summary,
        "utilisation": utilisation.median(),
    }


def time_of(trial):
    for kind, field in (("measurement", "median_ns"), ("estimate", "time_ns")):
        if trial.get(kind):
            return trial[kind][field]
    return None


def key(trial):
    return json.dumps(trial["configuration"])


def describe(run, table, optimum):
    """Prints a run. `table` maps configurations to times."""

    def time_in_table(trial):
        return table.get(key(trial), math.inf)

    window = run["answered"][-1] - run["answered"][0]
    spent = run["summary"]["spent"]
    judging = spent["verifying"] + spent["timing"] + spent["handing_over"]
    best = min((time_in_table(trial) for trial in run["trials"]), default=math.inf)
    near = next(
        (i for i, trial in enumerate(run["trials"]) if time_in_table(trial) <= 1.05 * optimum), None
    )
    return {
        "trials": len(run["trials"]),
        "rate": (len(run["answered"]) - 1) / window if window > 0 else math.nan,
        "judging": judging / spent["search"],
        "again": spent["again"] / spent["search"],
        "utilisation": run["utilisation"],
        "spent": {name: 1e3 * seconds / len(run["trials"]) for name, seconds in spent.items()},
        "best": best / optimum,
        "missed": near is None,
        "near_trials": len(run["trials"]) if near is None else near + 1,
        "near_seconds": run["answered"][-1]
        if near is None
        else run["answered"][min(near, len(run["answered"]) - 1)],
    }


def write_cache(file, task, exhaustive):
    """Writes the exhaustive run as a Kernel Tuner cache file, for `atunner search-bench`."""
    names = [
        parameter["Name"]
        for parameter in json.loads(task.read_text())["ConfigurationSpace"]["TuningParameters"]
    ]
    cache = {}
    for trial in exhaustive["trials"]:
        ns = time_of(trial)
        cache[",".join(str(value) for value in trial["configuration"])] = {
            **dict(zip(names, trial["configuration"])),
            "time": ns / 1e6 if ns else "RuntimeFailedConfig",
            "compile_time": 1e3 * trial.get("compile_seconds", 0),
        }
    parameters = {name: sorted({entry[name] for entry in cache.values()}) for name in names}
    pathlib.Path(file).write_text(
        json.dumps(
            {
                "device_name": exhaustive["summary"]["device"],
                "tune_params": parameters,
                "cache": cache,
            }
        )
    )


def print_tables(rows):
    print(
        "| strategy | runs | trials | trials/s | judging | again | busy | best / optimum | trials "
        "to 5 % | seconds to 5 % | missed |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for strategy, runs in rows:

        def mean(field):
            return statistics.mean(run[field] for run in runs)

        print(
            f"| {strategy} | {len(runs)} | {mean('trials'):.0f} | {mean('rate'):.1f} | "
            f"{100 * mean('judging'):.0f} % | {100 * mean('again'):.0f} % "
            f"| {mean('utilisation'):.0f} % | {mean('best'):.3f} | {mean('near_trials'):.1f} | "
            f"{mean('near_seconds'):.2f} "
            f"| {sum(run['missed'] for run in runs)} |"
        )
    parts = list(rows[0][1][0]["spent"])
    print(
        "\n| strategy | "
        + " | ".join(part.replace("_", " ") for part in parts)
        + " |\n|"
        + "---|" * (len(parts) + 1)
    )
    for strategy, runs in rows:
        print(
            f"| {strategy} | "
            + " | ".join(
                f"{statistics.mean(run['spent'][part] for run in runs):.2f}" for part in parts
            )
            + " |"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--atunner", required=True)
    parser.add_argument("--target-gpu", default="auto")
    parser.add_argument("--trials", type=int, default=80)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--kernel", choices=RESIZE, default="nbody")
    parser.add_argument("--size", type=int, help="points along each side of the image, or bodies")
    parser.add_argument("--strategies", default="auto,random")
    parser.add_argument(
        "--exhaustive-trials",
        type=int,
        default=100000,
        help="fewer than the space holds: the best of those stands for the optimum",
    )
    parser.add_argument(
        "--known", help="an earlier run's --json: its exhaustive run is taken, none is made"
    )
    parser.add_argument(
        "--limit", type=float, default=80, help="seconds of the exhaustive run at most"
    )
    parser.add_argument(
        "--cache",
        help="a file for the exhaustive run in Kernel Tuner's format, for atunner search-bench",
    )
    parser.add_argument("--json", help="a file for every run's trials")
    arguments = parser.parse_args()
    size = arguments.size or RESIZE[arguments.kernel][1]
    with tempfile.TemporaryDirectory() as name:
        task = write_task(pathlib.Path(name), arguments.kernel, size)
        rows, raw = [], []

        def run(strategy, trials, seed):
            one = tune(arguments, task, strategy, trials, seed, arguments.limit)
            raw.append({"strategy": strategy, "seed": seed, **one})
            return one

        if arguments.known:
            exhaustive = next(
                one
                for one in json.loads(pathlib.Path(arguments.known).read_text())
                if one["strategy"] == "exhaustive"
            )
        else:
            exhaustive = run("exhaustive", arguments.exhaustive_trials, 1)
        table = {key(trial): time_of(trial) for trial in exhaustive["trials"] if time_of(trial)}
        optimum = min(table.values()) / 1e3
        print(
            f"device {exhaustive['summary']['device']}, {exhaustive['summary']['evidence']}; "
            f"{arguments.kernel} {size}; "
            f"{exhaustive['summary']['space_size']} valid configurations, "
            f"{len(exhaustive['trials'])} tried, {len(table)} correct"
        )
        within = sum(ns <= 1050 * optimum for ns in table.values())
        print(
            f"optimum {optimum:.2f} us, median {statistics.median(table.values()) / 1e3:.2f} us, "
            f"{within} configurations within 5 %\n"
        )
        if arguments.cache:
            write_cache(arguments.cache, task, exhaustive)
        if not arguments.known:
            rows.append(("exhaustive", [describe(exhaustive, table, 1e3 * optimum)]))
        for strategy in arguments.strategies.split(","):
            rows.append(
                (
                    strategy,
                    [
                        describe(run(strategy, arguments.trials, 1 + seed), table, 1e3 * optimum)
                        for seed in range(arguments.seeds)
                    ],
                )
            )
        print_tables(rows)
        if arguments.json:
            pathlib.Path(arguments.json).write_text(json.dumps(raw))


if __name__ == "__main__":
    main()
