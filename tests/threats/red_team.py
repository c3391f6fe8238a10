#!/usr/bin/env python3
"""Tunes users' kernels of which some variants are wrong, and prints one table of the verdicts.

    tests/threats/red_team.py --atunner build/atunner [--target-gpu A100|auto] [--json FILE]
    tests/threats/red_team.py --table VIRTUAL.json REAL.json

Each case in wrong/ is a kernel with a parameter: its default is right, every other value is wrong
or cheats. Each case in honest/ has right variants only, which add in another order, in another
precision or by another formula. A wrong variant must not be called correct, and a right one must
be. A case is a .toml, a .json (the T1 format) or a bare .cu. --table prints the verdicts of earlier
runs side by side, as a table in Markdown.

The status is 1 if a wrong variant was accepted or a right one refused, apart from the cases in
RARE: these are wrong so seldom that no finite number of runs can be expected to find them.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# Wrong once in 100 003 readings of the clock, and once in a million warps.
RARE = {"globaltimer_random", "rare_clock"}
# Parameters that choose a wrong variant. Others, such as a block's size, are right at any value.
CHEATS = {"V", "SKIP", "CAP", "FAST", "SHORT_INDEX"}
# Compute the right result, slowly: a GPU measures that. The virtual GPU must not predict them to be
# fast: bench/imbalance.py.
SLOW = {"one_block_does_all", "shape_of_last_arrival", "heavy_by_block_number",
        "knows_prediction_inputs"}
# The kernel as given reads a flag that nothing initialises, and may be refused itself.
OWN_FAULT = {"missing_fence_flag"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--atunner")
    parser.add_argument("--table", nargs="+", metavar="FILE", help="verdicts that --json wrote")
    parser.add_argument("--target-gpu", default="A100")
    parser.add_argument("--wrong", action="append", help="folders in place of wrong/")
    parser.add_argument("--honest", action="append", help="folders in place of honest/")
    parser.add_argument("--only", default="", help="cases whose name contains one of these, by ,")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300, help="seconds a case may take")
    parser.add_argument("--json", help="file for all verdicts, written after each case")
    args = parser.parse_args()
    if bool(args.atunner) == bool(args.table):
        parser.error("either --atunner or --table is needed")
    return args


def cases_of(folder):
    """The cases of a folder: described ones, and sources that no description names."""
    described = sorted([*folder.glob("*.toml"), *folder.glob("*.json")])
    named = {path.stem for path in described}
    texts = " ".join(path.read_text() for path in described)
    bare = [path for path in sorted(folder.glob("*.cu"))
            if path.stem not in named and f'"{path.name}"' not in texts]
    return described + bare


def command(args, case, store, out):
    verb = ["hardware-optimize", "--auto-tune", "--source"] if case.suffix == ".cu" else ["tune"]
    return [args.atunner, *verb, str(case), "--target-gpu", args.target_gpu, "--store", store,
            "--quiet", "--fresh", "--no-transfer", "--out", out]


def trials_in(store):
    """The newest run's trials: default or not, in the cheating part or not, and the verdict."""
    with sqlite3.connect(store) as database:
        run = database.execute("select id, summary, space from runs order by created desc"
                               ).fetchone()
        if run is None:
            return []
        rows = database.execute("select candidate, proposer, body from trials where run = ?"
                                " order by number", (run[0],)).fetchall()
    best = json.loads(run[1] or "{}").get("best") or {}
    names = [parameter["name"] for parameter in json.loads(run[2])["parameters"]]
    found, defaults = [], []
    for candidate, proposer, body in rows:
        trial = json.loads(body)
        verdict = trial["verdict"]
        kind = verdict["kind"]
        values = trial.get("configuration") or []
        defaults = values if proposer == "default" else defaults
        varied = any(name in CHEATS and value != default
                     for name, value, default in zip(names, values, defaults))
        found.append({"default": proposer == "default", "varied": varied, "kind": kind,
                      "configuration": trial.get("configuration"),
                      "reason": verdict["reason"], "won": best.get("candidate") == candidate})
    return found


def run_case(args, case):
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store.db")
        try:
            done = subprocess.run(command(args, case, store, os.path.join(folder, "out")),
                                  capture_output=True, text=True, timeout=args.limit, check=False)
        except subprocess.TimeoutExpired:
            return [], f"longer than {args.limit:g} s"
        trials = trials_in(store) if os.path.exists(store) else []
    return trials, "" if trials else (done.stderr or done.stdout).strip()[-300:]


def accepted(trial):
    """True for results that may win. A sampled result is right as far as it was executed."""
    return trial["kind"] in ("correct", "sampled")


def faults_of(name, honest, trials):
    """What is wrong with the verdicts of a case, as (serious, text)."""
    faults = []
    given = any(trial["default"] and accepted(trial) for trial in trials)
    if not given and name not in OWN_FAULT:
        faults.append("the kernel as given was not accepted")
    for trial in trials:
        if honest and trial["varied"] and not accepted(trial):
            faults.append(f"a right variant was refused {trial['configuration']}: "
                          f"{trial['kind']}: {trial['reason'][:160]}")
        if not honest and trial["varied"] and accepted(trial) and name not in SLOW:
            faults.append(f"a wrong variant was accepted {trial['configuration']}")
    if not any(trial["varied"] for trial in trials):
        faults.append("no variant was judged")
    return faults


def kinds_of(trials):
    """The verdicts of the varied trials in words, e.g. "2 race, wrong-result"."""
    others = [trial["kind"] + (" (won)" if trial["won"] else "")
              for trial in trials if trial["varied"]]
    kinds = {kind: others.count(kind) for kind in sorted(others)}
    return ", ".join(kind if count == 1 else f"{count} {kind}" for kind, count in kinds.items())


def print_case(name, honest, trials, note, faults):
    mark = "ok " if not faults else ("rare" if name in RARE else "BAD")
    default = next((trial["kind"] for trial in trials if trial["default"]), "-")
    print(f"{mark:4} {'right' if honest else 'wrong':5} {name:28} {default:14} "
          f"{kinds_of(trials) or note}", flush=True)
    for fault in faults:
        print(f"       {fault}", flush=True)


class Count:
    """How many variants were judged, and how many of them wrongly."""

    def __init__(self):
        self.judged = {True: 0, False: 0}
        self.missed = self.refused = self.cases = self.bad = 0

    def add(self, name, honest, trials):
        others = [trial for trial in trials if trial["varied"]]
        self.judged[honest] += len(others)
        self.missed += sum(not honest and accepted(trial) for trial in others
                           if name not in RARE | SLOW)
        self.refused += sum(honest and not accepted(trial) for trial in others)
        self.cases += 1
        self.bad += bool(faults_of(name, honest, trials)) and name not in RARE

    def __str__(self):
        return (f"{self.judged[False]} wrong variants, {self.missed} accepted; "
                f"{self.judged[True]} right variants, {self.refused} refused; "
                f"{self.bad} of {self.cases} cases fail")


def subject_of(case):
    """The first line of a case's source, which says what it computes or what is wrong."""
    source = HERE / pathlib.Path(case).parent.name / (pathlib.Path(case).stem + ".cu")
    first = source.read_text().split("\n", 1)[0] if source.exists() else ""
    if not first.startswith("//"):
        return ""
    for words in ("V=0 honest, V=1: ", "V = 0 is right; ", "V = 0 is right"):
        first = first.replace(words, "")
    return first.strip("/ .;").replace("|", "\\|")


def print_table(files):
    """One row a case, one column of verdicts a file."""
    runs = [json.loads(pathlib.Path(file).read_text()) for file in files]
    by_case = [{(run["honest"], pathlib.Path(case).stem): (case, run)
                for case, run in one.items()} for one in runs]
    print("| case | what it is | " + " | ".join(pathlib.Path(file).stem for file in files) + " |")
    print("|---" * (2 + len(files)) + "|")
    counts = [Count() for _ in runs]
    for honest, name in sorted(set().union(*by_case)):
        cells = []
        for count, known in zip(counts, by_case):
            _, run = known.get((honest, name), ("", {"trials": [], "note": "not run"}))
            if (honest, name) in known:
                count.add(name, honest, run["trials"])
            cells.append(kinds_of(run["trials"]) or run["note"].split("\n")[0][:60] or "none")
        case = next(known[(honest, name)][0] for known in by_case if (honest, name) in known)
        print(f"| {'right' if honest else 'wrong'} `{name}` | {subject_of(case)} | "
              + " | ".join(cells) + " |")
    for file, count in zip(files, counts):
        print(f"\n{pathlib.Path(file).stem}: {count}.")


def run_all(args):
    wrong = [pathlib.Path(folder) for folder in args.wrong or [HERE / "wrong"]]
    honest = [pathlib.Path(folder) for folder in args.honest or [HERE / "honest"]]
    work = [(case, False) for folder in wrong for case in cases_of(folder)]
    work += [(case, True) for folder in honest for case in cases_of(folder)]
    if args.only:
        work = [one for one in work if any(part in one[0].stem for part in args.only.split(","))]
    print("     kind  case                         as given       variants", flush=True)
    all_trials, count = {}, Count()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        running = {pool.submit(run_case, args, case): (case, is_honest)
                   for case, is_honest in work}
        for future in concurrent.futures.as_completed(running):
            (case, is_honest), (trials, note) = running[future], future.result()
            print_case(case.stem, is_honest, trials, note, faults_of(case.stem, is_honest, trials))
            count.add(case.stem, is_honest, trials)
            all_trials[str(case)] = {"honest": is_honest, "trials": trials, "note": note}
            if args.json:
                pathlib.Path(args.json).write_text(json.dumps(all_trials, indent=1))
    print(count)
    return 1 if count.bad else 0


def main():
    args = arguments()
    if args.table:
        print_table(args.table)
        return 0
    if args.target_gpu == "auto" and shutil.which("nvidia-smi") is None:
        print("skipped: there is no GPU")
        return 77
    return run_all(args)


if __name__ == "__main__":
    sys.exit(main())
