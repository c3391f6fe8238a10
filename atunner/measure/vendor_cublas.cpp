#include "atunner/base/dylib.h"
#include "atunner/measure/vendor_kernels.h"

namespace atunner {
namespace {

// cublas_v2.h and library_types.h of CUDA 12 and 13.
constexpr int kOperationNone = 0;
constexpr int kCudaR32F = 0;
constexpr int kCudaR16F = 2;
constexpr int kCudaR16BF = 14;
constexpr int kCompute32F = 68;
constexpr int kAlgorithmDefault = -1;

struct CublasApi {
  int (*create)(void**) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*set_stream)(void*, void*) = nullptr;
  int (*gemm)(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int,
              int, const void*, void*, int, int, int, int) = nullptr;
};

/// c[M, N] = a · b row-major is cᵀ = bᵀ · aᵀ column-major.
class CublasMatmul : public TimedKernel {
 public:
  static Result<std::unique_ptr<TimedKernel>> Make(TimedDevice& device, const KernelSpec& spec) {
    ATUNNER_RETURN_IF_ERROR(CheckExtents("cuBLAS", spec));
    ATUNNER_TRY(const DynamicLibrary library, OpenCudaLibrary(CudaLibrary::kCublas));
    auto kernel = std::make_unique<CublasMatmul>();
    CublasApi& api = kernel->api_;
    ATUNNER_RETURN_IF_ERROR(library.Bind(api.create, "cublasCreate_v2"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(api.destroy, "cublasDestroy_v2"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(api.set_stream, "cublasSetStream_v2"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(api.gemm, "cublasGemmEx"));
    if (api.create(&kernel->handle_) != 0)
      return Fail(ErrorCode::kUnavailable, "cuBLAS does not start");
    if (api.set_stream(kernel->handle_, device.stream()) != 0)
      return Fail(ErrorCode::kUnavailable, "cuBLAS refuses the stream");
    kernel->type_ = spec.compute_dtype == DType::kFloat32   ? kCudaR32F
                    : spec.compute_dtype == DType::kFloat16 ? kCudaR16F
                                                            : kCudaR16BF;
    kernel->m_ = static_cast<int>(spec.dims.at("M"));
    kernel->n_ = static_cast<int>(spec.dims.at("N"));
    kernel->k_ = static_cast<int>(spec.dims.at("K"));
    return kernel;
  }
  CublasMatmul() = default;
  ~CublasMatmul() override {
    if (handle_) api_.destroy(handle_);
  }

  LaunchOutcome Enqueue(const TaskBuffers& buffers) override {
    const float one = 1;
    const float zero = 0;
    const auto pointer = [&](const char* name) { return PointerTo(buffers, name); };
    const int status = api_.gemm(handle_, kOperationNone, kOperationNone, n_, m_, k_, &one,
                                 pointer("b"), type_, n_, pointer("a"), type_, k_, &zero,
                                 pointer("c"), type_, n_, kCompute32F, kAlgorithmDefault);
    if (status != 0)
      return {LaunchOutcome::Kind::kRefused, "cuBLAS status " + std::to_string(status), {}, 0};
    return {};
  }
  Status Renew() override { return {}; }

 private:
  CublasApi api_;
  void* handle_ = nullptr;
  int type_ = 0;
  int m_ = 0, n_ = 0, k_ = 0;
};

}  // namespace

Result<std::unique_ptr<TimedKernel>> MakeCublasMatmul(TimedDevice& device, const KernelSpec& spec) {
  return CublasMatmul::Make(device, spec);
}

}  // namespace atunner
