#!/usr/bin/env python3
"""Writes step.json (Kineto) and step.sqlite (nsys 3.25): three steps of a small training loop.

Each step: the next batch (80 us), a copy, two matrix products, a softmax and an all-reduce that
overlaps with the second product; then the host waits for the GPU. pytorch_cpu.json.gz was exported
by PyTorch 1.13 (torch.profiler, CPU only)."""

import json
import os
import sqlite3

HERE = os.path.dirname(os.path.abspath(__file__))
PID, TID = 4000, 4001
events = []
correlation = 100


def host(cat, name, ts, dur, **args):
    events.append({"ph": "X", "cat": cat, "name": name, "pid": PID, "tid": TID, "ts": ts,
                   "dur": dur, "args": args})


def launch(call, ts, cat, name, start, dur, stream=7, **args):
    global correlation
    correlation += 1
    host("cuda_runtime", call, ts, 4, correlation=correlation)
    events.append({"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": stream, "ts": start,
                   "dur": dur, "args": {"device": 0, "stream": stream, "correlation": correlation,
                                        **args}})


def kernel(ts, name, start, dur, stream=7, **args):
    launch("cudaLaunchKernel", ts, "kernel", name, start, dur, stream, grid=[264, 1, 1],
           block=[256, 1, 1], **{"registers per thread": 64, "shared memory": 0,
                                 "est. achieved occupancy %": 50}, **args)


for step in range(3):
    t = 1_700_000_000_000_000.125 + 600 * step
    host("user_annotation", f"ProfilerStep#{step}", t, 560)
    host("cpu_op", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", t + 2, 80)
    host("cpu_op", "aten::to", t + 90, 20)
    launch("cudaMemcpyAsync", t + 95, "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", t + 101, 30,
           bytes=2 << 20)
    host("cpu_op", "aten::mm", t + 120, 20, **{"Input Dims": [[1024, 1024], [1024, 1024]]})
    kernel(t + 125, "ampere_sgemm_128x64_nn", t + 133.5, 100.25)
    host("cpu_op", "aten::softmax", t + 150, 20, **{"Input Dims": [[1024, 1024], [], []]})
    kernel(t + 155, "softmax_warp_forward<float, 10>", t + 235, 50)
    host("cpu_op", "c10d::allreduce_", t + 180, 20)
    kernel(t + 185, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", t + 286, 120, 20,
           **{"Collective name": "allreduce", "In msg nelems": 1 << 20, "dtype": "Float",
              "Group size": 2, "Process Group Name": "0"})
    host("cpu_op", "aten::mm", t + 210, 20, **{"Input Dims": [[1024, 1024], [1024, 1024]]})
    kernel(t + 215, "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x64x16", t + 287, 60)
    host("cuda_runtime", "cudaDeviceSynchronize", t + 240, 170)
    events.append({"ph": "i", "s": "t", "name": "[memory]", "cat": "cpu_instant_event", "pid": PID,
                   "tid": TID, "ts": t + 92, "args": {
                       "Addr": 4096, "Bytes": 2 << 20, "Device Id": 0, "Device Type": 1,
                       "Total Allocated": 8 << 20, "Total Reserved": 20 << 20}})
    events.append({"ph": "i", "s": "t", "name": "[memory]", "cat": "cpu_instant_event", "pid": PID,
                   "tid": TID, "ts": t + 420, "args": {
                       "Addr": 4096, "Bytes": -(2 << 20), "Device Id": 0, "Device Type": 1,
                       "Total Allocated": 6 << 20, "Total Reserved": 20 << 20}})

with open(os.path.join(HERE, "step.json"), "w") as file:
    json.dump({"schemaVersion": 1, "deviceProperties": [
        {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 84929347584, "numSms": 132}],
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},
        "traceEvents": events}, file, indent=0)

path = os.path.join(HERE, "step.sqlite")
if os.path.exists(path):
    os.remove(path)
db = sqlite3.connect(path)
db.execute("PRAGMA page_size = 512")
strings = {}


def string(text):
    return strings.setdefault(text, len(strings) + 1)


db.executescript("""
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER,
  gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER,
  srcKind INTEGER, dstKind INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT,
  globalTid INTEGER, textId INTEGER);
""")
for e in events:
    if e["ph"] != "X":
        continue
    start = round((e["ts"] - 1_700_000_000_000_000) * 1000)
    span = (start, start + round(e["dur"] * 1000))
    pid, args = PID << 24, e["args"]
    if e["cat"] == "cuda_runtime":
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?)",
                   (*span, pid + TID, args.get("correlation", 0), string(e["name"])))
    elif e["cat"] == "kernel":
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,0,?,?,?,?,264,1,1,256,1,1)",
                   (*span, args["stream"], args["correlation"], pid, string(e["name"])))
    elif e["cat"] == "gpu_memcpy":
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?,?,0,?,?,?,?,1,0,2)",
                   (*span, args["stream"], args["correlation"], pid, args["bytes"]))
    else:
        db.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,59,?,?,NULL)",
                   (*span, e["name"], pid + TID))
db.executemany("INSERT INTO StringIds VALUES (?,?)", [(i, text) for text, i in strings.items()])
db.commit()
db.execute("VACUUM")
db.close()
