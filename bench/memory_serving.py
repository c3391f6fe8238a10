#!/usr/bin/env python3
"""Memory that training steps reserve with PyTorch's allocators and with libatunner_memory.so.

    bench/memory_serving.py --library build/faces/libatunner_memory.so [--only gpt2] [--gpu 0]

Each pair of program and allocator has a process of its own. Columns: bytes in tensors at their
peak, bytes reserved at their peak, the first as a share of the second (utilisation), milliseconds
of a step, the last loss. Programs: ResNet-50, GPT-2 with one length, and GPT-2 with batches of
different lengths, as texts have them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "faces/python"))

ALLOCATORS = ("caching", "expandable", "atunner")
PROGRAMS = ("resnet50", "gpt2", "gpt2 lengths", "resnet50 sizes")


def batches(name, steps):
    """The arguments of the loss, on the CPU."""
    import torch

    generator = torch.Generator().manual_seed(3)
    draw = lambda low, high: int(torch.randint(low, high, (1,), generator=generator))  # noqa: E731
    made = []
    for _ in range(steps):
        if name.startswith("gpt2"):
            length = 8 * draw(16, 129) if name.endswith("lengths") else 1024
            samples = min(64, 16384 // length) if name.endswith("lengths") else 16
            tokens = torch.randint(0, 50257, (samples, length), generator=generator)
            made.append((tokens, tokens.flatten()))
        else:
            side = 32 * draw(4, 11) if name.endswith("sizes") else 224
            pictures = torch.randn(128, 3, side, side, generator=generator)
            made.append((pictures, torch.randint(0, 1000, (128,), generator=generator)))
    return made


def work(name, allocator, options):
    """The process: trains, and prints a line of JSON."""
    import torch

    served = None
    if allocator == "atunner":
        from atunner._memory import serve_memory

        served = serve_memory(options.library)
        if options.trace:
            served.begin_trace()
    import training_models as models

    model, _, optimizer = models.make("gpt2" if name.startswith("gpt2") else "resnet50", batch=1)
    model = model.cuda().train()
    update = optimizer(model)
    given = batches(name, options.steps)
    times = []
    for arguments in given:
        arguments = tuple(each.cuda() for each in arguments)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(arguments[0]), arguments[1])
        loss.backward()
        update.step()
        update.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    found = {"ms": statistics.median(times[len(times) // 2:]), "loss": loss.item()}
    if served is None:
        found["live"] = torch.cuda.max_memory_allocated()
        found["reserved"] = torch.cuda.max_memory_reserved()
    else:
        stats = served.stats()
        found.update(stats._asdict(), live=stats.peak_live, reserved=stats.peak_reserved)
        if options.trace:
            served.write_trace(options.trace)
    print(json.dumps(found), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", default="build/faces/libatunner_memory.so")
    parser.add_argument("--only", help="one of: " + ", ".join(PROGRAMS))
    parser.add_argument("--allocators", default=",".join(ALLOCATORS))
    parser.add_argument("--gpu", default="0")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--trace", help="also writes the allocations as a table there")
    parser.add_argument("--json", help="appends a line for each pair")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.library = os.path.abspath(options.library)
    if options.worker:
        work(*options.worker, options)
        return
    for name in [options.only] if options.only else PROGRAMS:
        for allocator in options.allocators.split(","):
            environment = dict(os.environ, CUDA_VISIBLE_DEVICES=options.gpu)
            if allocator == "expandable":
                environment["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
            answer = subprocess.run([sys.executable, *sys.argv, "--worker", name, allocator],
                                    env=environment, capture_output=True, text=True, check=False)
            try:
                found = json.loads(answer.stdout.splitlines()[-1])
            except (IndexError, json.JSONDecodeError):
                print(f"{name:15} {allocator:10} failed: {answer.stderr[-600:]}", flush=True)
                continue
            used = 100 * found["live"] / found["reserved"]
            line = (f"{name:15} {allocator:10} {found['live'] / 1e9:7.3f} of "
                    f"{found['reserved'] / 1e9:7.3f} GB, {used:5.1f} %  {found['ms']:8.2f} ms  "
                    f"loss {found['loss']:.5f}")
            if "moves" in found:
                line += (f"  {found['moves']} moves, {found['moved_pages']} pages, "
                         f"{found['synchronizations']} waits, {found['allocations']} allocations")
            print(line, flush=True)
            if options.json:
                with open(options.json, "a", encoding="utf-8") as file:
                    row = {"program": name, "allocator": allocator, **found}
                    file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
