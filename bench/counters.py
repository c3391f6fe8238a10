#!/usr/bin/env python3
"""Compares counted with measured counters, kernel by kernel.

    bench/counters.py profile --out DIR    # on a machine with a GPU
    bench/counters.py measure --out DIR    # on a machine with a GPU, nvcc and ncu
    bench/counters.py compare --measured DIR --target-gpu H100

`profile` runs `atunner profile` on bench/naive, which reads the GPU's counters by CUPTI and counts
on the virtual GPU. `measure` builds the programs of FOLDERS with nvcc and runs each under ncu.
`compare` reads what either put into DIR, and counts on the virtual GPU what
ncu measured: launches whose grid and block agree, the first of each kernel.

The error is |counted / measured - 1|. A counter that is small in both is left out. ncu empties L2
before a launch; `atunner profile` fills it with written lines, as the time model expects. So
dram_bytes are comparable with the latter alone.
"""

import argparse
import concurrent.futures
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Counter, and from which measured value on a relative error says something
COMPARED = {"global_load_requests": 100, "global_store_requests": 100, "global_load_sectors": 100,
            "global_store_sectors": 100, "instructions": 1000, "shared_requests": 100,
            "shared_wavefronts": 100, "bank_conflicts": 1000, "dram_bytes": 1 << 20}
METRICS = ["gpu__time_duration.sum", "smsp__inst_executed.sum",
           "smsp__inst_executed_op_global_ld.sum", "smsp__inst_executed_op_global_st.sum",
           "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
           "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
           "smsp__inst_executed_op_shared_ld.sum", "smsp__inst_executed_op_shared_st.sum",
           "smsp__inst_executed_op_shared_atom.sum",
           "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
           "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
           "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "dram__bytes.sum"]


FOLDERS = ("bench/naive", "bench/naive_public", "bench/naive_suites", "tests/programs")


def sources():
    return [source for folder in FOLDERS for source in sorted((ROOT / folder).glob("*.cu"))]


def build_one(source, folder, arch):
    """What went wrong, or None."""
    program = folder / source.stem
    built = subprocess.run(["nvcc", "-O3", "-std=c++17", f"-arch={arch}", "-o", program, source],
                           capture_output=True, text=True)
    if built.returncode:
        return "does not build: " + built.stderr.strip().splitlines()[-1][:100]
    return None


def profile_one(source, folder, ncu, launches):
    command = [ncu, "--csv", "--page", "raw", "--launch-count", str(launches), "--metrics",
               ",".join(METRICS), folder / source.stem]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20,
                              cwd=source.parent)
    except subprocess.TimeoutExpired:
        return "takes too long"
    (folder / f"{source.stem}.csv").write_text(done.stdout)
    return None if done.returncode == 0 else f"ncu ends with {done.returncode}"


def measure(args):
    ncu = shutil.which("ncu") or sys.exit("ncu is not in PATH; it comes with Nsight Compute")
    shutil.which("nvcc") or sys.exit("nvcc is not in PATH; it comes with the CUDA toolkit")
    folder = pathlib.Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        built = [pool.submit(build_one, source, folder, args.arch) for source in sources()]
        for source, problem in zip(sources(), built):
            measure_one(args, source, folder, ncu, problem.result())


def measure_one(args, source, folder, ncu, problem):
    problem = problem or profile_one(source, folder, ncu, args.launches)
    print(f"{source.stem:24} {problem or 'measured'}", flush=True)
    (folder / source.stem).unlink(missing_ok=True)


def profile(args):
    folder = pathlib.Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    for source in sources():
        if source.parent.name == "programs":
            continue
        result = run_json([args.atunner, "profile", source, "--json"])
        (folder / f"{source.stem}.json").write_text(json.dumps(result))
        counters = [c for launch in result.get("launches", []) for c in launch["counters"]]
        measured = any(counter["origin"] == "measured" for counter in counters)
        problem = (result.get("error", {}).get("what") or result.get("not_measured") or
                   "there is no GPU")
        print(f"{source.stem:24} {'measured' if measured else problem}", flush=True)


def run_json(command):
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        return {"error": {"what": done.stderr.strip()[:200] or "no output"}}


def values(launch):
    return {counter["name"]: counter["value"] for counter in launch["counters"]}


def first_launches(profile):
    """Measured counters of the first launch of each kernel, by the kernel's bare name."""
    found = {}
    for kernel in profile.get("kernels", []):
        name = kernel["kernel"].split("(")[0].split("<")[0].split("::")[-1].split(" ")[-1]
        found.setdefault(name, values(kernel))
    return found


def compare_kernel(args, source, name, measured):
    """Errors by counter, or the reason why there are none."""
    counted = run_json([args.atunner, "profile", source, "--kernel", name, "--target-gpu",
                        args.target_gpu, "--json"])
    if "launches" not in counted:
        return str(counted.get("error", {}).get("what", "not counted"))[:80]
    launch = values(counted["launches"][0])
    for shape in ("grid_blocks", "block_threads"):
        if launch[shape] != measured.get(shape):
            return f"another {shape}: {launch[shape]:.0f}, not {measured.get(shape)}"
    return errors_of(measured, launch)


def errors_of(measured, launch):
    errors = {}
    for counter, least in COMPARED.items():
        real, count = measured.get(counter), launch.get(counter)
        if real is None or count is None or max(real, count) < least:
            continue
        errors[counter] = abs(count / real - 1) if real else float("inf")
    return errors


def kernels_of(args):
    """A label, and errors by counter or why there are none, for each kernel."""
    for source in sources():
        csv = pathlib.Path(args.measured) / f"{source.stem}.csv"
        both = csv.with_suffix(".json")
        if both.exists():
            for launch in json.loads(both.read_text()).get("launches", [])[:1]:
                pairs = [c for c in launch["counters"] if c["origin"] == "measured"]
                measured = {c["name"]: c["value"] for c in pairs}
                counted = {c["name"]: c["counted"] for c in pairs}
                yield f"{source.stem}/{launch['kernel']}", errors_of(measured, counted)
        if csv.exists():
            measured = run_json([args.atunner, "profile", "--ncu", csv, "--json"])
            for name, counters in first_launches(measured).items():
                yield f"{source.stem}/{name}", compare_kernel(args, source, name, counters)


def compare(args):
    errors, kernels = {}, 0
    print(f"{'kernel':34}" + "".join(f"{c.replace('global_', ''):>18}" for c in COMPARED))
    for label, result in kernels_of(args):
        if isinstance(result, str):
            print(f"{label[:33]:34}  not compared: {result}", flush=True)
            continue
        kernels += 1
        for counter, error in result.items():
            errors.setdefault(counter, []).append(error)
        print(f"{label[:33]:34}" + "".join(
            f"{100 * result[c]:16.1f} %" if c in result else f"{'-':>18}" for c in COMPARED),
            flush=True)
    print(f"\n{kernels} kernels; median error, and the share of kernels within 5 % (15 % of DRAM):")
    for counter, found in errors.items():
        limit = 0.15 if counter == "dram_bytes" else 0.05
        within = sum(error <= limit for error in found)
        print(f"{counter:24} {100 * statistics.median(found):8.2f} %  {within} of {len(found)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("measure")
    one.add_argument("--out", required=True)
    one.add_argument("--arch", default="native")
    one.add_argument("--launches", type=int, default=8, help="of each program")
    one.add_argument("--jobs", type=int, default=8, help="compilers at the same time")
    two = verbs.add_parser("compare")
    two.add_argument("--measured", required=True)
    two.add_argument("--target-gpu", required=True)
    three = verbs.add_parser("profile")
    three.add_argument("--out", required=True)
    for verb in (two, three):
        verb.add_argument("--atunner", default="build/dev/faces/atunner")
    args = parser.parse_args()
    {"measure": measure, "compare": compare, "profile": profile}[args.verb](args)


if __name__ == "__main__":
    main()
