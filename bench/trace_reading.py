# Kineto-shaped synthetic trace as PyTorch 2.x writes it
import random,sys,json
n=int(sys.argv[1]); out=open(sys.argv[2],'w'); r=random.Random(1)
out.write('''{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 84929347584,
      "computeMajor": 9, "computeMinor": 0,
      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
      "regsPerBlock": 65536, "warpSize": 32,
      "sharedMemPerBlock": 49152, "numSms": 132
    , "regsPerMultiprocessor": 65536, "sharedMemPerBlockOptin": 232448, "sharedMemPerMultiprocessor": 233472
    }
  ],
  "cupti_version": 24,
  "cuda_runtime_version": 12040,
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8, "pg_count": 1},
  "baseTimeNanoseconds": 1714000000000000000,
  "traceName": "t.json",
  "displayTimeUnit": "ms",
  "traceEvents": [
''')
K=["void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)","sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas","void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t> >(Flash_fwd_params)","nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT","void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float> > > >(at::native::ReduceOp<float>)"]
O=["aten::linear","aten::addmm","aten::add","aten::_scaled_dot_product_flash_attention","aten::sum"]
t=7000000.0*1000; g=t
for i in range(n):
    k=i%5; c=100+i; t+=20000+r.randrange(3000)
    g=max(g,t+6000)+700
    d=r.randrange(2000,90000)
    f=lambda x:"%d.%03d"%(x//1000,x%1000)
    out.write('''  {
    "ph": "X", "cat": "cpu_op", "name": "%s", "pid": 3210, "tid": 3210,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %d,"Record function id": 0, "Sequence number": %d, "Fwd thread id": 0, "Concrete Inputs": ["", "", ""], "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"], "Input Strides": [[1024, 1], [1024, 1], [1]], "Input Dims": [[4096, 1024], [1024, 1024], [1024]], "Ev Idx": %d
    }
  },
  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 3210, "tid": 3210,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %d, "cbid": 211, "correlation": %d
    }
  },
  {
    "ph": "s", "id": %d, "pid": 3210, "tid": 3210, "ts": %s,
    "cat": "ac2g", "name": "ac2g"
  },
  {
    "ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %d,
      "queued": 0, "device": 0, "context": 1,
      "stream": 7, "correlation": %d,
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
    "ph": "f", "id": %d, "pid": 0, "tid": 7, "ts": %s,
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  },
'''%(O[k],f(t),f(18000),c,i,i,f(t+3000),f(5000),c,c,c,f(t+3000),K[k],f(g),f(d),c,c,c,f(g)))
    g+=d
out.write('''  {
    "name": "process_name", "ph": "M", "ts": 7000000.000, "pid": 3210, "tid": 0,
    "args": {
      "name": "python"
    }
  }
  ]
}
''')
