#!/usr/bin/env python3
"""Whole models by torch.compile(backend="atunner"), beside PyTorch's own. Needs a GPU, PyTorch 2,
and torchvision and transformers for their models; weights are random.

    bench/torch_models.py --models resnet18,bert --modes eager,atunner
    bench/torch_models.py --json times.json

A line for each model: seconds to the first result, the largest error (relative to the largest value
of a float64 run), milliseconds per call, and what was left to PyTorch.
"""

import argparse
import copy
import json
import os
import sys
import time
import warnings

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../faces/python"))
import atunner


def vision(name, batch=4, size=224):
    import torchvision

    return getattr(torchvision.models, name)(), torch.randn(batch, 3, size, size)


class Logits(torch.nn.Module):
    """A model of transformers with one tensor as its result."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        result = self.model(tokens, use_cache=False) if self.cached() else self.model(tokens)
        return result[0]

    def cached(self):
        return hasattr(self.model.config, "use_cache") and self.model.config.is_decoder_like


def language(kind, layers=4):
    import transformers

    if kind == "bert":
        config = transformers.BertConfig(num_hidden_layers=layers)
        model = transformers.BertModel(config)
    elif kind == "gpt2":
        config = transformers.GPT2Config(n_layer=layers)
        model = transformers.GPT2LMHeadModel(config)
    else:
        config = transformers.LlamaConfig(
            hidden_size=1024,
            intermediate_size=2816,
            num_hidden_layers=2,
            num_attention_heads=16,
            num_key_value_heads=4,
            vocab_size=32000,
        )
        model = transformers.LlamaForCausalLM(config)
    config.is_decoder_like = kind != "bert"
    return Logits(model), torch.randint(0, 30000, (2, 128))


MODELS = {
    "resnet18": lambda: vision("resnet18"),
    "resnet50": lambda: vision("resnet50"),
    "mobilenet": lambda: vision("mobilenet_v3_small"),
    "vit": lambda: vision("vit_b_16", batch=2),
    "bert": lambda: language("bert"),
    "gpt2": lambda: language("gpt2"),
    "llama": lambda: language("llama"),
}
MODES = {
    "eager": None,
    "inductor": {"backend": "inductor"},
    "atunner": {"backend": atunner.backend},
    "atunner-replay": {"backend": atunner.backend, "options": {"mode": "reduce-overhead"}},
    "atunner-tuned": {"backend": atunner.backend, "options": {"mode": "max-autotune"}},
}


def milliseconds(run, x):
    """The median of single calls, each waited for."""
    times = []
    for _ in range(30):
        torch.cuda.synchronize()
        began = time.perf_counter()
        run(x)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - began) * 1e3)
    return sorted(times)[len(times) // 2]


def measured(model, x, exact, given):
    torch._dynamo.reset()
    run = model if given is None else torch.compile(model, **given)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        began = time.perf_counter()
        y = run(x)
        torch.cuda.synchronize()
        first = time.perf_counter() - began
    error = (y.double().cpu() - exact).abs().max() / exact.abs().max()
    left = [str(each.message)[:300] for each in seen if "atunner" in str(each.message)]
    return {
        "first_s": round(first, 2),
        "error": float(f"{error.item():.2e}"),
        "ms": round(milliseconds(run, x), 3),
        "left": left,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--modes", default="eager,inductor,atunner,atunner-replay")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--json", help="file for the results")
    options = parser.parse_args()
    results = {}
    for name in options.models.split(","):
        torch.manual_seed(1)
        model, x = MODELS[name]()
        model = model.eval()
        with torch.no_grad():
            exact = copy.deepcopy(model).double()(x.double() if x.is_floating_point() else x)
            dtype = getattr(torch, options.dtype)
            model, x = model.to(dtype).cuda(), x.cuda()
            x = x.to(dtype) if x.is_floating_point() else x
            for mode in options.modes.split(","):
                try:
                    row = measured(model, x, exact, MODES[mode])
                except Exception as problem:  # the next one is tried
                    row = {"failed": f"{type(problem).__name__}: {problem}"[-700:]}
                results[f"{name} {mode}"] = row
                print(name, mode, json.dumps(row), flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"gpu": torch.cuda.get_device_name(), "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
