#!/usr/bin/env python3
"""Makes plans of KernelBench's problems at the benchmark's sizes on a machine without that GPU, for
bench/kernelbench_ratios.py.

Tensors have no memory here: a problem is traced with fake ones, and its weights are inputs of the
plan. Kernels are first guesses that are compiled and not checked: the other script compares each
plan with PyTorch before it times it. A plan or program that is there already is kept.

Usage: python3 bench/kernelbench_plans.py --out plans [--levels 1,2] [--only 1/3,2/40] [--jobs 2]
           [--target-gpu H100] [--conv-precision tf32] [--pack plans.tar.xz]
       ATUNNER names the program.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "faces", "python")]

KEPT = ("plan.json", "manifest.json", "kernel.cubin")


def parsed():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--levels", default="1,2")
    parser.add_argument("--only", default="", help="LEVEL/NUMBER, separated by commas")
    parser.add_argument("--out", required=True, help="folder of the plans")
    parser.add_argument("--small", action="store_true", help="small sizes, to test this script")
    parser.add_argument("--target-gpu", default="H100")
    parser.add_argument(
        "--conv-precision",
        default="float32",
        choices=("tf32", "float32"),
        help="of convolutions where cuDNN takes TF32, which PyTorch allows it by default",
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=120, help="seconds a plan may take")
    parser.add_argument("--pack", default="", help="archive of what a run needs")
    return parser.parse_args()


def made(key, options):
    """Seconds and what went wrong, for a program that was written."""
    folder = os.path.join(options.out, key.replace("/", "_"))
    out = os.path.join(folder, "plan")
    command = [os.environ.get("ATUNNER", "atunner"), "optimize"]
    command += [os.path.join(folder, "model", "model.json"), "--out", out, "--json", "--quiet"]
    command += ["--first-guess", "--unchecked", "--virtual", "--target-gpu", options.target_gpu]
    command += ["--conv-precision", options.conv_precision]
    began = time.monotonic()
    places = {"XDG_DATA_HOME": os.path.join(folder, "data")}
    try:
        ended = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env={**os.environ, **places},
            timeout=options.limit,
        )
        why = "" if ended.returncode == 0 else ended.stderr.strip()[-400:] or "failed"
    except subprocess.TimeoutExpired:
        why = f"no plan within {options.limit:.0f} s"
    shutil.rmtree(places["XDG_DATA_HOME"], ignore_errors=True)
    return time.monotonic() - began, why.replace("\n", " ")


def without_others(folder):
    """The manifest of an artifact that has its cubin alone."""
    with open(os.path.join(folder, "manifest.json")) as file:
        manifest = json.load(file)
    for name in ("kernel.cu", "kernel.ptx"):
        manifest.get("digests", {}).pop(name, None)
    return json.dumps(manifest).encode()


def add(archive, name, content):
    import io

    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def pack(options):
    with tarfile.open(options.pack, "w:xz", preset=6) as archive:
        for root, folders, files in sorted(os.walk(options.out)):
            folders.sort()
            for name in sorted(set(files) & set(KEPT)):
                path = os.path.join(root, name)
                if name == "manifest.json":
                    content = without_others(root)
                else:
                    with open(path, "rb") as file:
                        content = file.read()
                add(archive, os.path.relpath(path, options.out), content)
    print(f"{options.pack}: {os.path.getsize(options.pack) / 1e6:.1f} MB")


def main():
    options = parsed()
    import kernelbench
    from kernelbench.real_programs import write_program

    found = kernelbench.problems([int(level) for level in options.levels.split(",")])
    only = set(filter(None, options.only.split(",")))
    failed, seconds = 0, []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = {}
        for problem in found:
            folder = os.path.join(options.out, problem.key.replace("/", "_"))
            if (only and problem.key not in only) or os.path.exists(f"{folder}/plan/plan.json"):
                continue
            try:
                if not os.path.exists(os.path.join(folder, "model", "model.json")):
                    write_program(problem, os.path.join(folder, "model"), options.small)
            except Exception as error:
                failed += 1
                print(f"{problem.key:6} not captured: {type(error).__name__}: {error}", flush=True)
                continue
            waiting[pool.submit(made, problem.key, options)] = problem
        for future in concurrent.futures.as_completed(waiting):
            taken, why = future.result()
            failed += bool(why)
            seconds.append(taken)
            problem = waiting[future]
            print(f"{problem.key:6} {taken:6.1f} s  {problem.name:44} {why}".rstrip(), flush=True)
    if seconds:
        print(f"{len(seconds)} plans, median {sorted(seconds)[len(seconds) // 2]:.1f} s")
    if options.pack:
        pack(options)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
