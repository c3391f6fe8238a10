"""Compares the virtual GPU's checks with compute-sanitizer on the same planted bugs and correct
programs.

Every kernel of atunner/vgpu/sanitizer/{bugs,correct}.cu runs through `atunner sanitize` and, on
the GPU of this machine, through the tools of compute-sanitizer. Kernels that go on after their bug
run through all four tools, many in one process. Kernels that die or hang run through memcheck or
synccheck alone, each in a process of its own. A tool finds a bug if it reports one; its line is
right if it names a line that is marked BUG. The script needs nvcc. Without compute-sanitizer, or
with --no-gpu, its columns stay empty. On SIGTERM the script prints the results so far.

Usage: python3 bench/sanitizer.py --atunner build/atunner [--jobs 16] [--json results.json]
           [--only NAME,NAME]
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

SUITES = pathlib.Path(__file__).resolve().parent.parent / "atunner" / "vgpu" / "sanitizer"
TOOLS = {"memcheck": [], "racecheck": ["--racecheck-report=all"], "initcheck": [], "synccheck": []}
DEADLY = {
    "out of bounds": "memcheck",
    "misaligned address": "memcheck",
    "trap": "memcheck",
    "deadlock": "synccheck",
    "divergent barrier": "synccheck",
    "invalid warp-level operation": "synccheck",
}
CASE_SECONDS = 6  # a deadlock never ends on a GPU
GROUP_SECONDS = 60

HOST = """#include "{suite}.cu"
#include <cstdio>
#include <cstring>
struct Case {{ const char* name; const void* kernel; bool cooperative; }};
static const Case kCases[] = {{
{rows}}};
static int run(const Case& c) {{
  float x[64], *dx, *dy;
  for (int i = 0; i < 64; ++i) x[i] = {fill};
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dy, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  void* arguments[] = {{&dx, &dy}};
  if (c.cooperative) cudaLaunchCooperativeKernel(c.kernel, dim3(2), dim3(64), arguments, 1024, 0);
  else cudaLaunchKernel(c.kernel, dim3(2), dim3(64), arguments, 1024, 0);
  const cudaError_t error = cudaDeviceSynchronize();
  cudaFree(dx);
  cudaFree(dy);
  if (error != cudaSuccess)
    std::printf("CUDA error in %s: %s\\n", c.name, cudaGetErrorString(error));
  return error != cudaSuccess;
}}
int main(int argc, char** argv) {{
  for (int i = 1; i < argc; ++i) {{
    for (const Case& c : kCases) {{
      if (std::strcmp(c.name, argv[i]) != 0) continue;
      std::printf("CASE %s\\n", c.name);
      std::fflush(stdout);
      if (run(c) != 0) return 1;
    }}
  }}
  return 0;
}}
"""

TOML = """name = "{name}"
source = "{suite}.cu"
options = [{options}]
[sizes]
n = 64
[[argument]]
name = "x"
type = "float32"
shape = "n"
fill = "{fill}"
[[argument]]
name = "y"
type = "float32"
shape = "n"
role = "out"
[[launch]]
kernel = "{name}"
grid = 2
block = 64
shared = 1024
"""


class Case:
    def __init__(self, suite, name, kind, lines):
        self.suite, self.name, self.kind, self.lines, self.text = suite, name, kind, lines, ""


def read_suite(suite):
    """The kernels in the order of the file. A comment line that names a hazard begins a planted
    bug."""
    cases, kind, before, marked = [], "", [], False
    for number, line in enumerate((SUITES / f"{suite}.cu").read_text().splitlines(), 1):
        if line.startswith("// ") and not line.startswith("// --"):
            kind, before = line[3:] if suite == "bugs" else "", []
        if line.startswith("KERNEL ") and not line.endswith(");"):
            name = re.search(r"(\w+)\(In ", line).group(1)
            cases.append(Case(suite, name, kind, before))
            before = []
        if cases:
            cases[-1].text += line + "\n"
        if line.strip() == "// BUG":  # a mark on a line of its own is of the next one
            marked = True
            continue
        if marked or "// BUG" in line:
            marked = False
            helper = "__device__" in line and "static __device__" not in line
            own = cases and cases[-1].kind == kind and not before and not helper
            (cases[-1].lines if own else before).append(number)
    return cases


RUNNING = set()


def run(command, folder, seconds):
    """Output and errors, exit code (124 if the process was killed, with its children), and
    seconds."""
    start = time.time()
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    RUNNING.add(process.pid)
    try:
        out, code = process.communicate(timeout=seconds)[0], process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # what hangs on the GPU is a child of the tool
        out, code = process.communicate()[0], 124
    RUNNING.discard(process.pid)
    return out.decode(errors="replace"), code, time.time() - start


def includes(nvcc):
    root = pathlib.Path(shutil.which(nvcc)).resolve().parent.parent
    found = [
        folder
        for folder in (root / "include", root / "targets/x86_64-linux/include")
        if folder.is_dir()
    ]
    return [
        str(folder) for base in found[:1] for folder in (base, base / "cccl") if folder.is_dir()
    ]


def build(suite, cases, options, folder):
    rows = "".join(
        f'  {{"{c.name}", (const void*){c.name}, {str("this_grid" in c.text).lower()}}},\n'
        for c in cases
    )
    fill = "1.0f" if suite == "correct" else "0.01f * ((i * 37) % 64) - 0.3f + (i == 0)"
    (folder / f"{suite}_host.cu").write_text(HOST.format(suite=suite, rows=rows, fill=fill))
    command = [
        options.nvcc,
        "-std=c++17",
        f"-arch={options.arch}",
        "-lineinfo",
        "-w",
        "-o",
        f"{suite}_host",
        f"{suite}_host.cu",
    ]
    text, code, seconds = run(command, folder, 300)
    if code:
        raise SystemExit(f"{' '.join(command)} failed:\n{text}")
    return seconds


def ask_atunner(case, options, folder):
    fill = "constant 1" if case.suite == "correct" else "normal"
    flags = ", ".join(f'"-I{path}"' for path in includes(options.nvcc))
    (folder / f"{case.name}.toml").write_text(
        TOML.format(name=case.name, suite=case.suite, options=flags, fill=fill)
    )
    command = [
        options.atunner,
        "sanitize",
        f"{case.name}.toml",
        "--target-gpu",
        "H200",
        "--json",
        "--timeout",
        "20",
        "--max-instructions",
        "50000000",
    ]
    text, code, seconds = run(command, folder, 120)
    try:
        hazards = json.loads(text.splitlines()[-1])["hazards"]
    except (ValueError, KeyError, IndexError):
        return {
            "error": text.strip()[-300:],
            "code": code,
            "seconds": seconds,
            "kinds": [],
            "line": False,
        }
    sites = [site for h in hazards for site in (h, h["other"]) if site]
    line = any(site["line"] in case.lines for site in sites)
    return {
        "kinds": [h["kind"] for h in hazards],
        "line": line,
        "seconds": seconds,
        "code": code,
        "sites": [f"{h['kind']} {h['file']}:{h['line']}" for h in hazards],
    }


def reports_of(text):
    """The reports of a tool, each with its lines. The program's own output belongs to none."""
    text = "\n".join(line for line in text.splitlines() if line.startswith("========="))
    blocks = re.split(r"(?m)^========= (?=\S)", text)[1:]
    return [
        b
        for b in blocks
        if not re.match(r"COMPUTE-SANITIZER|.*SUMMARY|Program hit|Leaked|\(|Process|Target", b)
    ]


def ask_compute_sanitizer(cases, tool, options, folder):
    """The reports of a tool for some cases, which run one after another in one process. If a case
    kills or hangs the process, another process continues with the next case."""
    command = [
        options.compute_sanitizer,
        f"--tool={tool}",
        *TOOLS[tool],
        "--print-limit=2000",
        f"./{cases[0].suite}_host",
    ]
    seconds = CASE_SECONDS if len(cases) == 1 else GROUP_SECONDS
    text, code, seconds = run(command + [case.name for case in cases], folder, seconds)
    reports = reports_of(text)
    begun = re.findall(r"^CASE (\w+)", text, re.M) or [cases[0].name]
    failed = re.search(r"CUDA error in (\w+): (.*)", text)
    last = next(i for i, case in enumerate(cases) if case.name == begun[-1])
    answers = {}
    for case in cases[: last + 1]:
        own = [r for r in reports if len(cases) == 1 or re.search(rf"\b{case.name}\b", r)]
        lines = {int(n) for r in own for n in re.findall(rf"{case.suite}\.cu:(\d+)", r)}
        answers[case.name] = {
            "found": bool(own),
            "line": bool(lines & set(case.lines)),
            "hung": code == 124 and case.name == begun[-1],
            "died": bool(failed) and failed.group(1) == case.name,
            "seconds": seconds / (last + 1),
            "report": own[0][:400] if own else "",
        }
    if not reports:
        answers[begun[-1]]["tail"] = text[-1500:]
    if last + 1 < len(cases):
        answers.update(ask_compute_sanitizer(cases[last + 1 :], tool, options, folder))
    return answers


def gpu_jobs(cases):
    """The pairs (cases, tool) of each process, the long ones first."""
    jobs = []
    for suite in ("correct", "bugs"):
        together = [case for case in cases if case.suite == suite and case.kind not in DEADLY]
        jobs += [(together, tool) for tool in TOOLS if together]
    alone = sorted(
        (case for case in cases if case.kind in DEADLY), key=lambda c: c.kind != "deadlock"
    )
    return jobs + [([case], DEADLY[case.kind]) for case in alone]


def mark(result, bug):
    if result is None:
        return ""
    if result["found"]:
        return "line" if result["line"] and bug else "found"
    return "hung" if result["hung"] else "died" if result["died"] else "-"


def table(cases, ours, theirs, options):
    print(
        f"{'case':38} {'expected':30} {'atunner':34} "
        + " ".join(f"{tool:9}" for tool in TOOLS)
        + "  seconds: atunner, others"
    )
    totals = {
        "bugs": 0,
        "correct": 0,
        "atunner": 0,
        "kind": 0,
        "line": 0,
        "false": 0,
        "any": 0,
        "any line": 0,
        "any false": 0,
    }
    totals.update({tool: 0 for tool in TOOLS})
    for case in cases:
        own = ours.get(case.name, {"error": "not run", "kinds": [], "line": False, "seconds": 0})
        text = own.get("error") or (own["kinds"][0] if own["kinds"] else "clean")
        if case.kind and own["kinds"]:
            first = next((kind for kind in own["kinds"] if kind == case.kind), own["kinds"][0])
            text = f"{first}{', line' if own['line'] else ', OTHER LINE'}"
            totals["atunner"] += 1
            totals["kind"] += first == case.kind
            totals["line"] += first == case.kind and own["line"]
        results = {tool: theirs.get((case.name, tool)) for tool in TOOLS}
        known = {tool: r for tool, r in results.items() if r}
        totals["bugs" if case.kind else "correct"] += 1
        totals["false"] += not case.kind and bool(
            own["kinds"] or own.get("error", "not run") != "not run"
        )
        found = any(r["found"] for r in known.values())
        totals["any"] += bool(case.kind) and found
        totals["any line"] += bool(case.kind) and any(
            r["found"] and r["line"] for r in known.values()
        )
        totals["any false"] += not case.kind and found
        for tool, r in known.items():
            totals[tool] += bool(case.kind) and r["found"]
        columns = " ".join(f"{mark(r, case.kind):9}" for r in results.values())
        seconds = f"{own['seconds']:.1f}" + (
            f", {sum(r['seconds'] for r in known.values()):.1f}" if known else ""
        )
        print(
            f"{case.name:38} {case.kind or 'no report':30} {text[:34].splitlines()[0]:34} "
            f"{columns}  {seconds}"
        )
    print(
        f"\nplanted bugs: {totals['bugs']}; atunner found {totals['atunner']}, of the right kind "
        f"{totals['kind']}, at the right line {totals['line']}"
    )
    print(f"correct programs: {totals['correct']}; reports by atunner: {totals['false']}")
    if theirs:
        tools = ", ".join(f"{tool} {totals[tool]}" for tool in TOOLS)
        print(
            f"compute-sanitizer: {totals['any']} by any tool ({tools}), at the right line "
            f"{totals['any line']}; "
            f"reports on correct programs: {totals['any false']}"
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--atunner", required=True)
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    parser.add_argument(
        "--compute-sanitizer",
        default=shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer",
    )
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--json", help="write every answer here")
    parser.add_argument("--only", help="names of cases")
    parser.add_argument("--no-gpu", action="store_true")
    parser.add_argument("--gpu-jobs", type=int, default=6, help="processes on the GPU at once")
    options = parser.parse_args()
    options.atunner = str(pathlib.Path(options.atunner).resolve())
    start = time.time()
    cases = read_suite("bugs") + read_suite("correct")
    if options.only:
        cases = [case for case in cases if case.name in options.only.split(",")]
    with_gpu = not options.no_gpu and shutil.which(options.compute_sanitizer) is not None
    ours, theirs = {}, {}

    def finish(early=False):
        if options.json:
            text = {
                "atunner": ours,
                "compute-sanitizer": {" ".join(key): value for key, value in theirs.items()},
            }
            pathlib.Path(options.json).write_text(json.dumps(text, indent=1))
        table(cases, dict(ours), dict(theirs), options)
        print(
            f"{time.time() - start:.0f} s with {options.jobs} jobs"
            + (", stopped early" if early else "")
            + ("" if with_gpu else "; compute-sanitizer was not run"),
            flush=True,
        )

    def stop(*_):
        for pid in list(RUNNING):
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        finish(early=True)
        os._exit(1)

    signal.signal(signal.SIGTERM, stop)
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(
        options.jobs
    ) as pool, concurrent.futures.ThreadPoolExecutor(options.gpu_jobs) as gpu_pool:
        folder = pathlib.Path(name)
        for suite in ("bugs", "correct"):
            shutil.copy(SUITES / f"{suite}.cu", folder)
        built = {
            s: pool.submit(build, s, [c for c in cases if c.suite == s], options, folder)
            for s in ("bugs", "correct")
        }

        def on_virtual_gpu(case):
            ours[case.name] = ask_atunner(case, options, folder)

        def on_gpu(job):
            built[job[0][0].suite].result()
            for case, answer in ask_compute_sanitizer(*job, options, folder).items():
                theirs[case, job[1]] = answer

        futures = [gpu_pool.submit(on_gpu, job) for job in (gpu_jobs(cases) if with_gpu else [])]
        futures += [pool.submit(on_virtual_gpu, case) for case in cases]
        for future in [*built.values(), *futures]:
            future.result()
    finish()


if __name__ == "__main__":
    main()
