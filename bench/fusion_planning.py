#!/usr/bin/env python3
"""How long does it take to plan a large graph? Transformers of growing depth, as a graph in text
form, are planned by `atunner fusion`; no GPU is needed.

    python3 bench/fusion_planning.py --atunner build/release/faces/atunner [--layers 1,8,92]
"""
import argparse
import json
import os
import resource
import subprocess
import tempfile
import time

LAYER = """\
{p}mean = reduce_mean({x}, axes=[1], keep=true)
{p}centred = {x} - {p}mean
{p}square = {p}centred * {p}centred
{p}variance = reduce_mean({p}square, axes=[1], keep=true)
{p}scaled = {p}centred * rsqrt({p}variance + 1e-5)
{p}normed = {p}scaled * norm_{p}w
{p}qkv = contract({p}normed, qkv_{p}w, equation="mk,nk->mn")
{p}qkv_b = {p}qkv + qkv_{p}b
{p}q1 = slice({p}qkv_b, axis=1, start=0, stop=256)
{p}k1 = slice({p}qkv_b, axis=1, start=256, stop=512)
{p}v1 = slice({p}qkv_b, axis=1, start=512, stop=768)
{p}q2 = reshape({p}q1, shape=[4, 128, 8, 32])
{p}k2 = reshape({p}k1, shape=[4, 128, 8, 32])
{p}v2 = reshape({p}v1, shape=[4, 128, 8, 32])
{p}q = transpose({p}q2, order=[0, 2, 1, 3])
{p}k = transpose({p}k2, order=[0, 2, 1, 3])
{p}v = transpose({p}v2, order=[0, 2, 1, 3])
{p}scores = contract({p}q, {p}k, equation="bhqd,bhkd->bhqk")
{p}weighed = {p}scores * 0.17677669
{p}masked = {p}weighed + mask
{p}top = reduce_max({p}masked, axes=[3], keep=true)
{p}less = {p}masked - {p}top
{p}grown = exp({p}less)
{p}total = reduce_sum({p}grown, axes=[3], keep=true)
{p}share = {p}grown / {p}total
{p}mixed = contract({p}share, {p}v, equation="bhqk,bhkd->bhqd")
{p}turned = transpose({p}mixed, order=[0, 2, 1, 3])
{p}joined = reshape({p}turned, shape=[512, 256])
{p}out = contract({p}joined, out_{p}w, equation="mk,nk->mn")
{p}out_b = {p}out + out_{p}b
{p}kept = {x} + {p}out_b
{p}mean2 = reduce_mean({p}kept, axes=[1], keep=true)
{p}centred2 = {p}kept - {p}mean2
{p}square2 = {p}centred2 * {p}centred2
{p}variance2 = reduce_mean({p}square2, axes=[1], keep=true)
{p}scaled2 = {p}centred2 * rsqrt({p}variance2 + 1e-5)
{p}normed2 = {p}scaled2 * norm_{p}w
{p}up = contract({p}normed2, up_{p}w, equation="mk,nk->mn")
{p}up_b = {p}up + up_{p}b
{p}inner = {p}up_b * 0.70710678
{p}erf = erf({p}inner)
{p}one = {p}erf + 1
{p}half = {p}up_b * 0.5
{p}gelu = {p}half * {p}one
{p}down = contract({p}gelu, down_{p}w, equation="mk,nk->mn")
{p}down_b = {p}down + down_{p}b
{p}y = {p}kept + {p}down_b
"""
INPUTS = """\
input norm_{p}w: float32[256]
input qkv_{p}w: float32[768, 256]
input qkv_{p}b: float32[768]
input out_{p}w: float32[256, 256]
input out_{p}b: float32[256]
input up_{p}w: float32[1024, 256]
input up_{p}b: float32[1024]
input down_{p}w: float32[256, 1024]
input down_{p}b: float32[256]
"""


def transformer(layers):
    """The graph's text, and the number of its nodes without inputs."""
    text = "graph transformer\ninput x: float32[512, 256]\ninput mask: float32[128, 128]\n"
    text += "".join(INPUTS.format(p=f"l{i}_") for i in range(layers))
    value = "x"
    for i in range(layers):
        text += LAYER.format(p=f"l{i}_", x=value)
        value = f"l{i}_y"
    return text + f"output {value}\n", layers * LAYER.count("\n")


def plan(atunner, folder, layers):
    """Nodes, groups, seconds, seconds of a processor."""
    path = os.path.join(folder, "graph.atg")
    text, nodes = transformer(layers)
    with open(path, "w") as file:
        file.write(text)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    answer = subprocess.run(
        [atunner, "fusion", path, "--target-gpu", "H200", "--json"], check=True, capture_output=True
    )
    seconds = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return nodes, len(json.loads(answer.stdout)["groups"]), seconds, cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--atunner", required=True)
    parser.add_argument("--layers", default="1,8,32,107")
    options = parser.parse_args()
    print("| layers | nodes | groups | seconds | CPU seconds |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for layers in map(int, options.layers.split(",")):
            nodes, groups, seconds, cpu = plan(options.atunner, folder, layers)
            print(f"| {layers} | {nodes} | {groups} | {seconds:.2f} | {cpu:.2f} |", flush=True)


if __name__ == "__main__":
    main()
