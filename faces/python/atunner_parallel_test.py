#!/usr/bin/env python3
"""Tests of spreading and measuring training steps, on the CPU with two processes."""

import json
import os
import sys
import tempfile
import unittest

try:
    import torch
except ImportError:
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from atunner import _measure_parallel, _parallel  # noqa: E402

PROGRAM = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
        self.out = nn.Linear(16, 4)

    def forward(self, x):
        for block in self.h:
            x = torch.relu(block(x))
        return self.out(x)

def model():
    torch.manual_seed(1)
    return Model()

def batch(samples):
    return torch.ones(samples, 16), torch.zeros(samples, dtype=torch.long)

def loss(model, x, y):
    return nn.functional.cross_entropy(model(x), y)

def optimizer(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)
"""

DDP = {"micro_batch_size": 4, "DistributedDataParallel": {}}


class ParallelTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.environ["PYTHONPATH"] = os.path.dirname(os.path.abspath(__file__))
        self.program = os.path.join(self.folder.name, "program.py")
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(PROGRAM)

    def measure(self, **job):
        base = {"program": self.program, "gpus": 2, "device": "cpu", "steps": 2, "turns": 3,
                "seconds": 60, "out": os.path.join(self.folder.name, "out.json")}
        return _measure_parallel.measure({**base, **job})

    def test_variants_train_alike_and_failures_stay_apart(self):
        found = self.measure(parts=["alone"], variants=[
            {"name": "alone", "settings": {"micro_batch_size": 4}},
            {"name": "replicas", "settings": {**DDP, "gradient_accumulation_steps": 2}},
            {"name": "wrong", "settings": {"micro_batch_size": 4, "nonsense": 1}},
        ])
        self.assertEqual(len(found["replicas"]["ms"]), 6)
        for a, b in zip(found["alone"]["losses"], found["replicas"]["losses"]):
            self.assertAlmostEqual(a, b, places=5)
        self.assertIn("unknown settings: nonsense", found["wrong"]["failed"])
        self.assertEqual(sorted(found["alone"]["parts"]["blocks_ms"]), ["h.0", "h.1", "h.2"])

    def test_search_keeps_what_is_faster(self):
        found = self.measure(
            variants=[{"name": "today", "settings": DDP}],
            changes=[{"name": "wrong", "settings": {"compile": "nonsense"}},
                     {"name": "batch", "settings": {"micro_batch_size": 400}}])
        self.assertIn("nonsense", found["wrong"]["failed"])
        self.assertTrue(found["batch"]["kept"])
        self.assertTrue(found["batch"]["best"])
        self.assertEqual(found["batch"]["settings"]["DistributedDataParallel"], {})
        self.assertIn("final_ms_a_sample", found["today"])
        with open(os.path.join(self.folder.name, "out.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["results"], found)

    def test_changes_are_merged(self):
        merged = _measure_parallel.merged(
            {"a": {"b": 1}, "c": 2}, {"a": {"d": 3}, "c": None})
        self.assertEqual(merged, {"a": {"b": 1, "d": 3}})

    def test_programs_say_what_they_lack(self):
        with open(self.program, "w", encoding="utf-8") as file:
            file.write("def model(): pass")
        with self.assertRaisesRegex(_parallel.SettingsError, "batch, loss, optimizer"):
            _parallel.Program(self.program)


if __name__ == "__main__":
    unittest.main()
