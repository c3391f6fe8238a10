#!/usr/bin/env python3
"""Tunes the programs of this folder with one command each, and runs them with the tuned kernels.

    run_programs.py --atunner build/atunner [--short] [--jobs 2] [NAME ...]

Prints a table. Fails if a program of programs.txt does not come out as it says there. Exit code 77:
there is no nvcc.
"""
import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


@dataclasses.dataclass
class Program:
    name: str
    options: str
    arguments: list
    expected: str
    short: bool


@dataclasses.dataclass
class Outcome:
    program: Program
    kernels: int = 0
    tuned: int = 0
    gain: float = 1.0
    refused: list = dataclasses.field(default_factory=list)
    applied: str = "-"
    seconds: float = 0.0
    problem: str = ""


def read_programs():
    programs = []
    for line in (FOLDER / "programs.txt").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, options, arguments, expected = (part.strip() for part in line.split("|"))
        options, arguments = (part.format(folder=FOLDER) for part in (options, arguments))
        short = name.startswith("*")
        programs.append(
            Program(name.strip("* "), options, shlex.split(arguments), expected, short))
    return programs


def run(command, timeout):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          timeout=timeout)


def tune(program, args, folder, outcome):
    command = [args.atunner, "hardware-optimize", "--json", "--source",
               FOLDER / f"{program.name}.cu", "--auto-tune", "--target-gpu", args.target_gpu,
               "--budget", args.budget, "--store", folder / "store.db", "--out", folder / "best",
               f"--nvcc=-O3 {program.options}", "--"]  # with --nvcc, the program is always built
    done = run(command + program.arguments, args.timeout)
    try:
        answer = json.loads(done.stdout)
    except json.JSONDecodeError:
        outcome.problem = f"no JSON (exit code {done.returncode}): " + done.stderr.strip()[-400:]
        return
    if done.returncode < 0 or done.returncode > 3:
        outcome.problem = f"exit code {done.returncode}: {done.stderr.strip()[-400:]}"
    if "kernels" not in answer:
        outcome.refused.append(json.dumps(answer.get("error", answer)))
        return
    for kernel in answer["kernels"]:
        outcome.kernels += 1
        if kernel["tuned"]:
            outcome.tuned += 1
            outcome.gain = max(outcome.gain, kernel["gain"] or 1)
        else:
            outcome.refused.append(f"{kernel['kernel']}: {kernel['obstacle'] or 'nothing found'}")


def apply(program, args, folder, outcome):
    binary = folder / program.name
    # As `capture --source` builds it: a module with another digest keeps its own kernels.
    built = run(["nvcc", "-O3", "-lineinfo", "-gencode=arch=compute_80,code=compute_80", "-o",
                 binary, FOLDER / f"{program.name}.cu"] + shlex.split(program.options),
                args.timeout)
    if built.returncode != 0:
        outcome.problem = "nvcc: " + built.stderr[-400:]
        return
    run_it = [binary] + program.arguments
    capture = [args.atunner, "capture", "--target-gpu", args.target_gpu, "--launches", "1",
               "--out", folder / "plain.capture", "--"]
    plain = run(capture + run_it, args.timeout)
    tuned = run([args.atunner, "apply", folder / "best", "--target-gpu", args.target_gpu, "--"]
                + run_it, args.timeout)
    results = [line for line in plain.stdout.splitlines() if ".capture: " not in line]
    equal = tuned.stdout.splitlines() == results
    different = [line for line in tuned.stderr.splitlines() if "first result different" in line]
    outcome.applied = "equal" if equal and not different else "DIFFERENT"
    if outcome.applied != "equal":
        outcome.problem = (f"output {tuned.stdout[-200:]!r} in place of {plain.stdout[-200:]!r} "
                           + tuned.stderr[-600:])


def try_program(program, args):
    outcome = Outcome(program)
    began = time.time()
    with tempfile.TemporaryDirectory(prefix="atunner_programs.") as folder:
        folder = pathlib.Path(args.keep or folder) / (program.name if args.keep else "")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            tune(program, args, folder, outcome)
            if outcome.tuned and not outcome.problem:
                apply(program, args, folder, outcome)
        except subprocess.TimeoutExpired as late:
            outcome.problem = f"hangs: more than {late.timeout} s: {' '.join(late.cmd)[-300:]}"
    outcome.seconds = time.time() - began
    return outcome


def is_as_expected(outcome):
    if outcome.problem:
        return False
    if outcome.program.expected == "tuned":
        return outcome.tuned > 0
    reason = outcome.program.expected.removeprefix("nothing:").strip()
    return outcome.tuned == 0 and any(reason in text for text in outcome.refused)


def show(outcome):
    print(f"{outcome.program.name:22} {outcome.kernels:7} {outcome.tuned:5} {outcome.gain:6.2f} "
          f"{outcome.applied:9} {outcome.seconds:5.0f} s  "
          f"{'' if is_as_expected(outcome) else 'NOT AS EXPECTED'}")
    for text in outcome.refused:
        print(f"    refused: {' '.join(text.split())[:500]}")
    if outcome.problem:
        print(f"    problem: {outcome.problem}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--atunner", required=True)
    parser.add_argument("--target-gpu", default="A100")
    parser.add_argument("--budget", default="10")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for each command")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--short", action="store_true", help="the programs with a star")
    parser.add_argument("--keep", help="folder in which captures and artifacts stay")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if shutil.which("nvcc") is None:
        print("there is no nvcc")
        return SKIPPED
    args.atunner = os.path.abspath(args.atunner)
    programs = [one for one in read_programs()
                if (one.name in args.names or not args.names) and (one.short or not args.short)]
    print(f"{'program':22} kernels tuned   gain apply     seconds")
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        outcomes = []
        for outcome in pool.map(lambda one: try_program(one, args), programs):
            outcomes.append(outcome)
            show(outcome)
    tuned = sum(outcome.tuned > 0 for outcome in outcomes)
    print(f"{tuned} of {len(outcomes)} programs tuned, "
          f"{sum(outcome.tuned for outcome in outcomes)} of "
          f"{sum(outcome.kernels for outcome in outcomes)} kernels")
    return 0 if all(map(is_as_expected, outcomes)) else 1


if __name__ == "__main__":
    sys.exit(main())
