#!/usr/bin/env python3
"""Writes the pickles of this folder with protocol 4, as PyTorch does."""

import os
import pickle

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20


def event(action, addr, size, **more):
    return {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": 0,
            "frames": [], **more}


def write(name, value):
    with open(os.path.join(HERE, name), "wb") as file:
        pickle.dump(value, file, protocol=4)


write("plain.pickle", {
    "byte": 200, "short": 60000, "negative": -70000, "long": 140_000_000_000_000,
    "negative_long": -140_000_000_000_000, "text": "grün", "long_text": "x" * 300, "float": 0.25,
    "true": True, "false": False, "none": None, "list": list(range(1500)), "tuple": (1, 2, 3, 4),
    "pair": (1, 2), "empty": (), "dict": {"a": [], "b": {}}})

traces = [
    [event("alloc", 64, 512)],
    [event("segment_alloc", 1000 * MIB, 20 * MIB), event("alloc", 1000 * MIB, 2 * MIB),
     event("free_requested", 500, 5 * MIB), event("free_completed", 500, 5 * MIB),
     event("alloc", 1004 * MIB, MIB), event("free_requested", 1000 * MIB, 2 * MIB),
     event("free_completed", 1000 * MIB, 2 * MIB), event("alloc", 1008 * MIB, 3 * MIB),
     event("free_completed", 1004 * MIB, MIB), event("segment_free", 0, 10 * MIB)],
]
segments = [{"device": 1, "address": 1000 * MIB, "total_size": 20 * MIB, "blocks": []},
            {"device": 1, "address": 2000 * MIB, "total_size": 10 * MIB, "blocks": []},
            {"device": 0, "address": 0, "total_size": 2 * MIB, "blocks": []}]
write("snapshot.pickle", {"segments": segments, "device_traces": traces,
                          "allocator_settings": {"expandable_segments": False}})
