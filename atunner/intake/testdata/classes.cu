// 2D heat equation, explicit Euler. Mini-app with a solver class.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <cuda_runtime.h>

namespace heat {

using real = double;

#define CUDA_CALL(call)                                                              \
  do {                                                                               \
    cudaError_t status_ = (call);                                                    \
    if (status_ != cudaSuccess)                                                      \
      throw std::runtime_error(std::string(#call) + ": " + cudaGetErrorString(status_)); \
  } while (0)

__global__ void step_kernel(const real* __restrict__ u, real* __restrict__ v, int nx, int ny, real c) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= nx || j >= ny) return;
  const int at = j * nx + i;
  if (i == 0 || j == 0 || i == nx - 1 || j == ny - 1) {
    v[at] = u[at];
    return;
  }
  v[at] = u[at] + c * (u[at - 1] + u[at + 1] + u[at - nx] + u[at + nx] - real(4) * u[at]);
}

class Solver {
 public:
  Solver(int nx, int ny, real alpha)
      : nx_(nx), ny_(ny), c_(alpha * 0.25), block_(32, 8), grid_((nx + 31) / 32, (ny + 7) / 8) {
    const size_t bytes = size() * sizeof(real);
    CUDA_CALL(cudaMalloc(&u_, bytes));
    CUDA_CALL(cudaMalloc(&v_, bytes));
    CUDA_CALL(cudaMemset(v_, 0, bytes));
    CUDA_CALL(cudaStreamCreate(&stream_));
  }
  ~Solver() {
    cudaFree(u_);
    cudaFree(v_);
    cudaStreamDestroy(stream_);
  }
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  void upload(const std::vector<real>& host) {
    CUDA_CALL(cudaMemcpyAsync(u_, host.data(), size() * sizeof(real), cudaMemcpyHostToDevice, stream_));
  }

  void advance(int steps) {
    for (int s = 0; s < steps; ++s) {
      step_kernel<<<grid_, block_, 0, stream_>>>(u_, v_, nx_, ny_, c_);
      std::swap(u_, v_);
    }
    CUDA_CALL(cudaGetLastError());
    CUDA_CALL(cudaStreamSynchronize(stream_));
  }

  void download(std::vector<real>& host) const {
    CUDA_CALL(cudaMemcpy(host.data(), u_, size() * sizeof(real), cudaMemcpyDeviceToHost));
  }

  size_t size() const { return static_cast<size_t>(nx_) * ny_; }

 private:
  int nx_, ny_;
  real c_;
  dim3 block_, grid_;
  real* u_ = nullptr;
  real* v_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace heat

int main() {
  const int nx = 1024, ny = 768;
  std::vector<heat::real> field(nx * ny, 0.0);
  for (int i = 0; i < nx; ++i) field[i] = 100.0;
  heat::Solver solver(nx, ny, 0.8);
  solver.upload(field);
  solver.advance(200);
  solver.download(field);
  std::printf("centre: %f\n", field[(ny / 2) * nx + nx / 2]);
  return 0;
}

// What configures a launch, from functions.
struct Shape {
  dim3 grid;
  dim3 block;
  size_t shared = 0;
};

static Shape shape_of(int n, int threads) {
  Shape shape;
  shape.block = dim3(threads);
  shape.grid = dim3((n + threads - 1) / threads);
  return shape;
}

class Range {
 public:
  __host__ __device__ Range(float low, float high) : low_(low), width_{high - low} {}
  __device__ float at(float t) const { return low_ + t * width_; }

 private:
  float low_, width_;
};

__global__ void ramp(Range range, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = range.at(float(i) / n);
}

void draw(float*& out, const int n) {
  const auto [grid, block, shared] = shape_of(n, 256);
  cudaMalloc(&out, n * sizeof(float));
  ramp<<<grid, block, shared>>>(Range(0.5f, 2.0f), out, n);
}
