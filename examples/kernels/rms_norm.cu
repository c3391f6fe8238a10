// A kernel of a PyTorch extension. Only Python knows its tensors; the "atunner:" lines state them.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

// atunner: size rows = 256
// atunner: size width = 1024
// atunner: arg x in float16[rows, width]
// atunner: arg weight in float16[width]
// atunner: arg y out float16[rows, width]
// atunner: arg epsilon = 1e-6
template <typename scalar_t>
__global__ void rms_norm_kernel(const scalar_t* __restrict__ x, const scalar_t* __restrict__ weight, scalar_t* __restrict__ y, float epsilon, int width) {
  __shared__ float of_warps[32];
  const size_t row = size_t(blockIdx.x) * width;
  float squares = 0;
  for (int i = threadIdx.x; i < width; i += blockDim.x) squares += float(x[row + i]) * float(x[row + i]);
  for (int lanes = 16; lanes > 0; lanes /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, lanes);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = squares;
  __syncthreads();
  float sum = 0;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) sum += of_warps[warp];
  const float scale = rsqrtf(sum / width + epsilon);
  for (int i = threadIdx.x; i < width; i += blockDim.x) y[row + i] = scalar_t(float(x[row + i]) * scale) * weight[i];
}

torch::Tensor rms_norm(torch::Tensor x, torch::Tensor weight, double epsilon) {
  const int width = x.size(-1);
  const int rows = x.numel() / width;
  torch::Tensor y = torch::empty_like(x);
  const at::cuda::OptionalCUDAGuard guard(device_of(x));
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "rms_norm", [&] {
    rms_norm_kernel<scalar_t><<<rows, std::min(width, 1024), 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), weight.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), epsilon, width);
  });
  return y;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("rms_norm", &rms_norm); }
