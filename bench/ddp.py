#!/usr/bin/env python3
"""Exposed communication of data-parallel training of GPT-2 on two GPUs.

A step without synchronisation of gradients (`no_sync`) is compute alone; what a step of DDP takes
longer is its exposed communication. Settings of DDP are compared in turns in one pair of processes;
NCCL's own choices and the rules of `atunner comm tune` are compared in turns of pairs.

    bench/ddp.py [--rules FOLDER] [--steps 8] [--turns 3] [--batch 8] [--json FILE]

Prints one line for each setting: milliseconds of a step (median of all turns), exposed
milliseconds, and the scaling from one GPU to two. Needs PyTorch with NCCL and two GPUs.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

SETTINGS = {
    "ddp": {},
    "bucket 10": {"bucket_cap_mb": 10},
    "bucket 50": {"bucket_cap_mb": 50},
    "bucket 100": {"bucket_cap_mb": 100},
    "views": {"gradient_as_bucket_view": True},
    "views, static": {"gradient_as_bucket_view": True, "static_graph": True},
    "views, static, bucket 50": {"gradient_as_bucket_view": True, "static_graph": True,
                                 "bucket_cap_mb": 50},
    "views, static, bf16": {"gradient_as_bucket_view": True, "static_graph": True},
}


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)).cuda()


def times_of_steps(model, optimizer, ids, steps, quiet):
    """Milliseconds of each step; `quiet` leaves the gradients unsynchronised."""
    import contextlib
    import torch
    samples = []
    for _ in range(steps):
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        begin.record()
        with model.no_sync() if quiet else contextlib.nullcontext():
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = model(input_ids=ids, labels=ids).loss
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=not quiet)
        end.record()
        end.synchronize()
        samples.append(begin.elapsed_time(end))
    return samples


def work(rank, options):
    import torch
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options["port"]))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=2)
    torch.manual_seed(0)
    ids = torch.randint(0, 50257, (options["batch"], 1024), device="cuda")
    wrapped = {}
    for name in options["settings"]:
        torch.manual_seed(1)
        model = torch.nn.parallel.DistributedDataParallel(gpt2(), [rank], **SETTINGS[name])
        if name.endswith("bf16"):
            model.register_comm_hook(None, default_hooks.bf16_compress_hook)
        wrapped[name] = model, torch.optim.AdamW(model.parameters(), fused=True)
        times_of_steps(*wrapped[name], ids, 3, False)
    found = {name: [] for name in ["compute", *wrapped]}
    for _ in range(options["turns"]):
        for name, (model, optimizer) in wrapped.items():
            found[name] += times_of_steps(model, optimizer, ids, options["steps"], False)[1:]
        dist.barrier(device_ids=[rank])
        # The model of plain DDP: others with a static graph refuse steps without synchronisation.
        found["compute"] += times_of_steps(*wrapped["ddp"], ids, options["steps"], True)[1:]
        dist.barrier(device_ids=[rank])
    if rank == 0:
        with open(options["out"], "w", encoding="utf-8") as file:
            json.dump({name: statistics.median(values) for name, values in found.items()}, file)
    dist.destroy_process_group()


def run_pair(options, rules):
    environment = dict(os.environ, NCCL_NVLS_ENABLE="0")
    if rules:
        environment.update(NCCL_TUNER_PLUGIN=os.path.join(rules, "libatunner_nccl.so"),
                           NCCL_TUNER_CONFIG_FILE=os.path.join(rules, "nccl_tuner.conf"))
    subprocess.run([sys.executable, __file__, "--worker", json.dumps(options)], env=environment,
                   check=True, timeout=240)
    with open(options["out"], encoding="utf-8") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rules", help="folder that `atunner comm tune --out` wrote")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--json", help="writes the figures there")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        import torch.multiprocessing as mp
        mp.spawn(work, (json.loads(arguments.worker),), nprocs=2)
        return
    options = {"steps": arguments.steps, "turns": arguments.turns, "batch": arguments.batch}
    rows = {}
    begin = time.monotonic()
    kinds = [("NCCL's choice", None), ("tuned", arguments.rules)][: 2 if arguments.rules else 1]
    for index, (kind, rules) in enumerate(kinds):
        settings = list(SETTINGS) if not rules else ["ddp", "views, static"]
        found = run_pair(dict(options, settings=settings, port=29600 + index,
                              out=f"/tmp/atunner_ddp_{index}.json"), rules)
        for name, milliseconds in found.items():
            rows[f"{kind}: {name}"] = milliseconds
            exposed = milliseconds - found["compute"]
            print(f"{kind + ': ' + name:44} {milliseconds:8.2f} ms  exposed {exposed:6.2f} ms  "
                  f"scaling {100 * found['compute'] / milliseconds:5.1f} %", flush=True)
    print(f"{time.monotonic() - begin:.0f} s")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
