// Runs a float32 softmax that atunner tuned, on a stream of its own, and checks the result against
// float64.
//
//   atunner optimize --operator softmax --input-shape 8192,4096 --out best/
//   g++ -std=c++17 run_artifact.cpp -latunner_runtime -lcuda -o run_artifact && ./run_artifact
//   best/ 8192 4096
//
// Only the two lines marked "1" and "2" are about atunner; the rest is what any program that uses
// CUDA has.
#include <cuda.h>

#include <atunner.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

void Cu(CUresult code, const char* what) {
  if (code == CUDA_SUCCESS) return;
  const char* text = nullptr;
  cuGetErrorString(code, &text);
  throw std::runtime_error(std::string(what) + ": " + (text != nullptr ? text : "unknown error"));
}

/// The first GPU's primary context (the one the CUDA runtime and PyTorch use), and a stream.
class Gpu {
 public:
  Gpu() {
    Cu(cuInit(0), "cuInit");
    Cu(cuDeviceGet(&device_, 0), "cuDeviceGet");
    CUcontext context = nullptr;
    Cu(cuDevicePrimaryCtxRetain(&context, device_), "cuDevicePrimaryCtxRetain");
    Cu(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    // waits for the uploads below
    Cu(cuStreamCreate(&stream_, CU_STREAM_DEFAULT), "cuStreamCreate");
  }
  ~Gpu() {
    cuStreamDestroy(stream_);
    cuDevicePrimaryCtxRelease(device_);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  CUstream stream() const { return stream_; }

 private:
  CUdevice device_ = 0;
  CUstream stream_ = nullptr;
};

/// Device memory for floats.
class Tensor {
 public:
  explicit Tensor(std::size_t count) : bytes_(count * sizeof(float)) {
    Cu(cuMemAlloc(&address_, bytes_), "cuMemAlloc");
  }
  ~Tensor() { cuMemFree(address_); }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  CUdeviceptr address() const { return address_; }
  void Upload(const std::vector<float>& values) {
    Cu(cuMemcpyHtoD(address_, values.data(), bytes_), "cuMemcpyHtoD");
  }
  std::vector<float> Download() const {
    std::vector<float> values(bytes_ / sizeof(float));
    Cu(cuMemcpyDtoH(values.data(), address_, bytes_), "cuMemcpyDtoH");
    return values;
  }

 private:
  std::size_t bytes_;
  CUdeviceptr address_ = 0;
};

std::vector<float> SomeValues(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>((i * 2654435761u) % 10007u) / 1000.0f - 5.0f;
  return values;
}

/// Largest error relative to the right value.
double WorstError(const std::vector<float>& x, const std::vector<float>& y, std::size_t cols) {
  double worst = 0;
  for (std::size_t row = 0; row < x.size(); row += cols) {
    double top = -INFINITY, total = 0;
    for (std::size_t c = 0; c < cols; ++c) top = std::fmax(top, double{x[row + c]});
    for (std::size_t c = 0; c < cols; ++c) total += std::exp(x[row + c] - top);
    for (std::size_t c = 0; c < cols; ++c) {
      const double right = std::exp(x[row + c] - top) / total;
      const double error = std::fabs(y[row + c] - right) / right;
      worst = error <= worst ? worst : error;  // a NaN counts as worst
    }
  }
  return worst;
}

bool Run(const char* folder, std::int64_t rows, std::int64_t cols) {
  const Gpu gpu;

  atunner::runtime::Set artifacts;
  artifacts.Add(folder);
  // 1
  const auto softmax = artifacts.Choose(
      {"softmax", "float32", {{"rows", rows}, {"cols", cols}}, {}}, 0);
  std::printf("%s\n", softmax.match_text().c_str());

  const std::vector<float> values = SomeValues(static_cast<std::size_t>(rows * cols));
  Tensor x(values.size());
  const Tensor y(values.size());
  x.Upload(values);
  softmax.Launch(gpu.stream(), {x.address(), y.address()});  // 2
  Cu(cuStreamSynchronize(gpu.stream()), "cuStreamSynchronize");

  const double worst = WorstError(values, y.Download(), static_cast<std::size_t>(cols));
  const bool right = worst < 1e-4;
  std::printf("%lld x %lld: largest error %.2e, %s\n", static_cast<long long>(rows),
              static_cast<long long>(cols), worst, right ? "correct" : "WRONG");
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  const long long rows = argc == 4 ? std::atoll(argv[2]) : 0;
  const long long cols = argc == 4 ? std::atoll(argv[3]) : 0;
  if (rows < 1 || cols < 1) {
    std::fprintf(stderr, "usage: run_artifact FOLDER ROWS COLS\n");
    return 2;
  }
  try {
    return Run(argv[1], rows, cols) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "run_artifact: %s\n", error.what());
    return 1;
  }
}
