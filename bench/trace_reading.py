#!/usr/bin/env python3
"""Writes a trace in the form of PyTorch 2's profiler, for bench/trace_reading.cpp:

    bench/trace_reading.py LAUNCHES FILE      150000 launches make 228 MB

Each launch is five events: an operator, its call of the runtime, the kernel, and the two ends of
the arrow between them. Kernels wait for each other on one stream."""

import random
import sys

HEAD = """{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 84929347584, "numSms": 132
    }
  ],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
  "baseTimeNanoseconds": 1714000000000000000,
  "traceEvents": [
"""

LAUNCH = """  {
    "ph": "X", "cat": "cpu_op", "name": "%(operator)s", "pid": 3210, "tid": 3210,
    "ts": %(t)s, "dur": 18.000,
    "args": {
      "External id": %(id)d,"Record function id": 0, "Sequence number": %(id)d, \
"Fwd thread id": 0, "Concrete Inputs": ["", "", ""], \
"Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"], \
"Input Strides": [[1024, 1], [1024, 1], [1]], \
"Input Dims": [[4096, 1024], [1024, 1024], [1024]], "Ev Idx": %(id)d
    }
  },
  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 3210, "tid": 3210,
    "ts": %(call)s, "dur": 5.000,
    "args": {
      "External id": %(id)d, "cbid": 211, "correlation": %(id)d
    }
  },
  {
    "ph": "s", "id": %(id)d, "pid": 3210, "tid": 3210, "ts": %(call)s,
    "cat": "ac2g", "name": "ac2g"
  },
  {
    "ph": "X", "cat": "kernel", "name": "%(kernel)s", "pid": 0, "tid": 7,
    "ts": %(start)s, "dur": %(dur)s,
    "args": {
      "External id": %(id)d,
      "queued": 0, "device": 0, "context": 1,
      "stream": 7, "correlation": %(id)d,
      "registers per thread": 32,
      "shared memory": 0,
      "blocks per SM": 7.757576,
      "warps per SM": 31.030304,
      "grid": [1024, 1, 1],
      "block": [128, 1, 1],
      "est. achieved occupancy %%": 48
    }
  },
  {
    "ph": "f", "id": %(id)d, "pid": 0, "tid": 7, "ts": %(start)s,
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  },
"""

TAIL = """  {
    "name": "process_name", "ph": "M", "ts": 7000000.000, "pid": 3210, "tid": 0,
    "args": {
      "name": "python"
    }
  }
  ]
}
"""

KERNELS = (
    ("aten::linear",
     "void at::native::vectorized_elementwise_kernel<4, "
     "at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >"
     "(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)"),
    ("aten::addmm",
     "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_"
     "segment_k_off_kernel__5x_cublas"),
    ("aten::_scaled_dot_product_flash_attention",
     "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, "
     "cutlass::bfloat16_t> >(Flash_fwd_params)"),
    ("aten::mm", "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT"),
    ("aten::sum",
     "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
     "at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float> > > >"
     "(at::native::ReduceOp<float>)"),
)


def microseconds(nanoseconds):
    return "%d.%03d" % (nanoseconds // 1000, nanoseconds % 1000)


def main():
    launches, path = int(sys.argv[1]), sys.argv[2]
    rng = random.Random(1)
    host = gpu = 7_000_000_000
    with open(path, "w") as out:
        out.write(HEAD)
        for i in range(launches):
            operator, kernel = KERNELS[i % 5]
            host += 20000 + rng.randrange(3000)
            gpu = max(gpu, host + 6000) + 700
            duration = rng.randrange(2000, 90000)
            out.write(LAUNCH % {"operator": operator, "kernel": kernel, "id": i + 100,
                                "t": microseconds(host), "call": microseconds(host + 3000),
                                "start": microseconds(gpu), "dur": microseconds(duration)})
            gpu += duration
        out.write(TAIL)


main()
