#!/usr/bin/env python3
"""Collectives of two GPUs by NCCL's own choice and by the rules of `atunner comm tune`, in turns.

    bench/collectives.py FOLDER [--turns 2] [--json FILE]

FOLDER is what `atunner comm tune --out FOLDER` wrote. Each turn starts a pair of processes with and
one without NCCL_TUNER_PLUGIN. Calls go through torch.distributed, as a training run makes them:
below about 4 MiB its own overhead (about 40 us a call) hides the collective. Needs PyTorch with
NCCL and two GPUs.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

SIZES = [1024 * 8**power for power in range(7)]


def milliseconds(call, count):
    import torch
    begin = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    call()
    begin.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / count


def work(rank, port, out):
    import torch
    import torch.distributed as dist
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=2)
    found = {}
    for size in SIZES:
        whole = torch.zeros(size // 4, device="cuda")
        half = torch.zeros(size // 8, device="cuda")
        calls = {"allreduce": lambda: dist.all_reduce(whole),
                 "allgather": lambda: dist.all_gather_into_tensor(whole, half),
                 "reducescatter": lambda: dist.reduce_scatter_tensor(half, whole)}
        for name, call in calls.items():
            milliseconds(call, 3)
            samples = []
            for _ in range(5):
                dist.barrier(device_ids=[rank])
                samples.append(milliseconds(call, 30 if size <= 4 << 20 else 5))
            found[f"{name} {size}"] = 1000 * statistics.median(samples)
    if rank == 0:
        with open(out, "w", encoding="utf-8") as file:
            json.dump(found, file)
    dist.destroy_process_group()


def run_pair(port, rules):
    environment = dict(os.environ, NCCL_NVLS_ENABLE="0")
    if rules:
        environment.update(NCCL_TUNER_PLUGIN=os.path.join(rules, "libatunner_nccl.so"),
                           NCCL_TUNER_CONFIG_FILE=os.path.join(rules, "nccl_tuner.conf"))
    out = f"/tmp/atunner_collectives_{port}.json"
    subprocess.run([sys.executable, __file__, "--worker", str(port), out], env=environment,
                   check=True, timeout=120)
    with open(out, encoding="utf-8") as file:
        return json.load(file)


def main():
    if sys.argv[1:2] == ["--worker"]:
        import torch.multiprocessing as mp
        mp.spawn(work, (int(sys.argv[2]), sys.argv[3]), nprocs=2)
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--json", help="writes the figures there")
    arguments = parser.parse_args()
    runs = {"default": [], "tuned": []}
    for turn in range(arguments.turns):
        runs["default"].append(run_pair(29500 + 2 * turn, None))
        runs["tuned"].append(run_pair(29501 + 2 * turn, arguments.folder))
    for key in runs["default"][0]:
        own = [run[key] for run in runs["default"]]
        tuned = [run[key] for run in runs["tuned"]]
        print(f"{key:26} default {min(own):8.2f} .. {max(own):8.2f}  "
              f"tuned {min(tuned):8.2f} .. {max(tuned):8.2f} us  "
              f"{100 * (1 - sum(tuned) / sum(own)):6.1f} %")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(runs, file, indent=1)


if __name__ == "__main__":
    main()
