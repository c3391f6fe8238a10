"""Times of training steps on the GPUs of this machine, for several settings in turns.

    python3 -m atunner._measure_parallel JOB.json

The job is a JSON object:

    program      the file of a program (_parallel.py)
    gpus         number of processes, one for each GPU
    steps        timed steps of a turn
    turns        turns of all variants
    seconds      no turn begins later
    out          the file for the results
    variants     [{"name": …, "settings": {…}, "environment": {…}}]
    trace        a folder for traces of two steps, or null
    traced       names of the variants to trace; all without it
    parts        names of variants of one GPU whose passes are timed one by one
    changes      [{"name": …, "settings": {…}}], tried on top of the first variant and of the
                 changes that were kept; all variants then have one environment
    references   further variants, timed beside the result at the end

Variants with the same environment share one set of processes and take turns there, so that clocks
and power affect all alike; sets follow each other. The results are {"results": {name: {"ms":
[milliseconds of each step], "losses": […], "peak_bytes": …} or {"failed": reason}}}.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

_LIMIT_S = 240.0
_SLEEP_CYCLES = 200_000_000  # a tenth of a second at 2 GHz


def file_name(variant):
    """The folder of a variant's traces."""
    return "".join(c if c.isalnum() else "_" for c in variant)


def _free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def merged(settings, change):
    """Settings with those of a change; maps are merged, and None removes a key."""
    result = dict(settings)
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


class _CpuEvent:
    """A moment on the CPU, for tests without a GPU."""

    def record(self):
        self.at = time.perf_counter()

    def synchronize(self):
        pass

    def elapsed_time(self, later):
        return 1e3 * (later.at - self.at)


class _Rank:
    """One process: builds the variants and times them."""

    def __init__(self, rank, job):
        self.rank, self.job, self.steps, self.found = rank, job, {}, {}
        self.deadline = time.monotonic() + job.get("seconds", _LIMIT_S)

    def open(self):
        import torch
        import torch.distributed as dist
        from ._parallel import program_of

        self.device = self.job.get("device", "cuda")
        self.gpu = self.device == "cuda"
        if self.gpu:
            torch.cuda.set_device(self.rank)
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(self.job["port"]))
        backend = "nccl" if self.gpu else "gloo"
        dist.init_process_group(backend, rank=self.rank, world_size=self.job["gpus"])
        self.torch, self.dist = torch, dist
        dynamo = getattr(torch, "_dynamo", None)
        if dynamo is not None:
            # Variants with other batches are compiled for their own sizes, as alone.
            dynamo.config.automatic_dynamic_shapes = False
            dynamo.config.cache_size_limit = 64
        self.program = program_of(self.job["program"])

    def run(self):
        self.open()
        self.compare()
        self.write()
        self.dist.destroy_process_group()

    def compare(self):
        """All variants in turns."""
        for variant in self.job["variants"]:
            self.build(variant)
            self.write()
        for _ in range(self.job["turns"]):
            for name in list(self.steps):
                if self.all_agree(time.monotonic() < self.deadline):
                    self.found[name]["ms"] += self.times(self.steps[name])
            self.write()
        traced = self.job.get("traced", list(self.steps)) if self.job.get("trace") else []
        for name in traced:
            if name in self.steps and self.all_agree(time.monotonic() < self.deadline):
                self.profile(name)
        for name in self.job.get("parts", []):
            if name in self.steps and self.all_agree(time.monotonic() < self.deadline):
                self.found[name]["parts"] = self.parts(self.steps[name])

    def all_agree(self, yes):
        """True if it is so on all ranks: all must take the same collectives."""
        flag = self.torch.tensor([int(yes)], device=self.device)
        self.dist.all_reduce(flag, op=self.dist.ReduceOp.MIN)
        return bool(flag.item())

    def barrier(self):
        self.dist.barrier(**({"device_ids": [self.rank]} if self.gpu else {}))

    def event(self):
        return self.torch.cuda.Event(enable_timing=True) if self.gpu else _CpuEvent()

    def build(self, variant):
        from ._parallel import spread

        step, torch, name, begin = None, self.torch, variant["name"], time.monotonic()
        try:
            torch.manual_seed(0)
            held = torch.cuda.memory_allocated() if self.gpu else 0
            step = spread(self.program, variant["settings"], self.device)
            if self.gpu:
                torch.cuda.reset_peak_memory_stats()
            losses = [step().item() for _ in range(3)]
        except Exception as problem:  # noqa: BLE001: one variant's failure ends no other
            if self.rank == 0:
                traceback.print_exc()
            self.found[name] = {"failed": f"{type(problem).__name__}: {problem}"[-600:]}
            step = None
        if not self.all_agree(step is not None):
            self.found.setdefault(name, {"failed": "another rank failed"})
            return
        peak = torch.cuda.max_memory_allocated() - held if self.gpu else 0
        self.steps[name] = step
        self.found[name] = {"ms": [], "losses": losses, "peak_bytes": peak,
                            "build_s": round(time.monotonic() - begin, 1)}

    def times(self, step):
        """Milliseconds of each step but the first, which still fills the queue."""
        self.barrier()
        marks = [self.event() for _ in range(self.job["steps"] + 2)]
        marks[0].record()
        for mark in marks[1:]:
            step()
            mark.record()
        marks[-1].synchronize()
        return [a.elapsed_time(b) for a, b in zip(marks[1:], marks[2:])]

    def parts(self, step):
        """Median milliseconds of the forward pass of each block, of forward, backward and update
        of the whole, for one microbatch."""
        blocks = self.program.blocks(step.model)
        marks, hooks = [], []
        for block in blocks:
            before, after = self.event(), self.event()
            marks.append((before, after))
            record = lambda mark: lambda *_: mark.record()  # noqa: E731
            hooks.append(block.register_forward_pre_hook(record(before)))
            hooks.append(block.register_forward_hook(record(after)))
        rows = []
        for _ in range(6):
            times = [self.event() for _ in range(4)]
            if self.gpu:
                # The GPU waits until the host is ahead of it: its times are those of kernels alone.
                self.torch.cuda._sleep(_SLEEP_CYCLES)
            times[0].record()
            loss = step.forward()
            times[1].record()
            step.backward(loss)
            times[2].record()
            step.update()
            times[3].record()
            times[3].synchronize()
            rows.append([a.elapsed_time(b) for a, b in zip(times, times[1:])]
                        + [a.elapsed_time(b) for a, b in marks])
        for hook in hooks:
            hook.remove()
        medians = [statistics.median(column) for column in zip(*rows[1:])]
        names = {id(module): name for name, module in step.model.named_modules()}
        return {"samples": int(step.batch[0].shape[0]), "forward_ms": medians[0],
                "backward_ms": medians[1], "update_ms": medians[2],
                "blocks_ms": {names[id(b)]: ms for b, ms in zip(blocks, medians[3:])}}

    def profile(self, name):
        """A trace of two steps of each rank, for `atunner timeline`."""
        from torch.profiler import ProfilerActivity, profile

        step = self.steps[name]
        self.barrier()
        with profile(activities=[ProfilerActivity.CUDA]) as recorded:
            for _ in range(2):
                step()
            self.torch.cuda.synchronize()
        folder = os.path.join(self.job["trace"], file_name(name))
        os.makedirs(folder, exist_ok=True)
        recorded.export_chrome_trace(os.path.join(folder, f"rank{self.rank}.json"))

    def write(self):
        if self.rank != 0:
            return
        with open(self.job["part"] + ".new", "w", encoding="utf-8") as file:
            json.dump(self.found, file)
        os.replace(self.job["part"] + ".new", self.job["part"])


class _Search(_Rank):
    """Tries changes one after the other on top of those that were kept."""

    #: A change is kept if a sample takes at least this part less time, by medians, and less in two
    #: of three turns.
    LEAST_GAIN = 0.003

    def compare(self):
        base, self.current = self.job["variants"][0], None
        for variant in self.job["variants"]:
            self.build(variant)
            self.write()
        if base["name"] in self.steps:
            self.current, settings = base["name"], base["settings"]
            for change in self.job["changes"]:
                if not self.all_agree(time.monotonic() < self.deadline):
                    break
                settings = self.attempt(settings, change)
                self.write()
        for variant in self.job.get("references", []):
            if self.all_agree(time.monotonic() < self.deadline):
                self.build(variant)
                self.write()
        self.final()

    def attempt(self, settings, change):
        """The settings that are kept."""
        name, wanted = change["name"], merged(settings, change["settings"])
        self.build({"name": name, "settings": wanted})
        if name not in self.steps:
            return settings
        rows = {self.current: [], name: []}
        for _ in range(self.job["turns"]):
            for each in rows:
                rows[each].append(self.turn(each))
        before, after = rows.values()
        won = sum(b < a for a, b in zip(before, after))
        gain = 1 - statistics.median(after) / statistics.median(before)
        kept = self.decided(gain >= self.LEAST_GAIN and 3 * won >= 2 * len(before))
        self.found[name].update(
            before=self.current, kept=kept, before_ms_a_sample=statistics.median(before),
            ms_a_sample=statistics.median(after), settings=wanted)
        dropped = self.current if kept else name
        if dropped not in [variant["name"] for variant in self.job["variants"]]:
            del self.steps[dropped]
            if self.gpu:
                self.torch.cuda.empty_cache()
        if kept:
            self.current = name
        return wanted if kept else settings

    def turn(self, name):
        """Milliseconds of a sample: the median of a turn."""
        times = self.times(self.steps[name])
        self.found[name]["ms"] += times
        return statistics.median(times) / self.steps[name].samples

    def decided(self, kept):
        """The decision of the first rank: all must build the same."""
        flag = self.torch.tensor([int(kept)], device=self.device)
        self.dist.broadcast(flag, 0)
        return bool(flag.item())

    def final(self):
        """What was kept beside the variants, in turns."""
        fixed = self.job["variants"] + self.job.get("references", [])
        names = [v["name"] for v in fixed if v["name"] in self.steps]
        names += [self.current] if self.current and self.current not in names else []
        rows = {name: [] for name in names}
        for _ in range(self.job["turns"]):
            for name in names:
                rows[name].append(self.turn(name))
        for name in names:
            self.found[name]["final_ms_a_sample"] = statistics.median(rows[name])
        if self.current:
            self.found[self.current]["best"] = True


def _worker(rank, job):
    (_Search if "changes" in job else _Rank)(rank, job).run()


def _run_set(job, variants, environment, folder):
    """Results of variants with one environment. Processes that hang are ended."""
    part = job["out"] + ".part"
    if os.path.exists(part):
        os.remove(part)
    inner = dict(job, variants=variants, port=_free_port(), part=part)
    file = os.path.join(folder, "job.json")
    with open(file, "w", encoding="utf-8") as out:
        json.dump(inner, out)
    command = [sys.executable, "-m", "atunner._measure_parallel", "--set", file]
    reason = ""
    process = subprocess.Popen(command, env=dict(os.environ, **environment), start_new_session=True)
    try:
        if process.wait(timeout=job.get("seconds", _LIMIT_S) + 30) != 0:
            reason = "its processes failed; their message is in the log"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        reason = "its processes did not end in time"
    found = {}
    if os.path.exists(part):
        with open(part, encoding="utf-8") as given:
            found = json.load(given)
        os.remove(part)
    for variant in variants:
        if not found.get(variant["name"], {"ms": []}).get("ms", [1]):
            found[variant["name"]] = {"failed": reason or "there was no time left for it"}
        found.setdefault(variant["name"], {"failed": reason})
    return found


def measure(job):
    """Runs the job; returns the results by name, and writes them to job["out"] as they come."""
    sets = {}
    for variant in job["variants"]:
        key = json.dumps(variant.get("environment") or {}, sort_keys=True)
        sets.setdefault(key, []).append(variant)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for key, variants in sets.items():
            results.update(_run_set(job, variants, json.loads(key), folder))
            with open(job["out"], "w", encoding="utf-8") as file:
                json.dump({"results": results}, file)
    return results


def main(arguments):
    """The entry of both kinds of processes."""
    if arguments[:1] == ["--set"]:
        import torch.multiprocessing as mp

        with open(arguments[1], encoding="utf-8") as file:
            job = json.load(file)
        mp.spawn(_worker, (job,), nprocs=job["gpus"])
        return 0
    with open(arguments[0], encoding="utf-8") as file:
        measure(json.load(file))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
