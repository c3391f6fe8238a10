// cuDNN 9 through its fixed functions, which need no graphs.
#include "atunner/base/dylib.h"
#include "atunner/measure/vendor_kernels.h"

namespace atunner {
namespace {

// cudnn_graph.h, cudnn_ops.h and cudnn_cnn.h of version 9.
constexpr int kDataFloat = 0, kDataHalf = 2, kDataBfloat16 = 9;
constexpr int kTensorNhwc = 1;
constexpr int kCrossCorrelation = 1;
constexpr int kTensorOpMath = 1, kFmaMath = 3;
constexpr int kSoftmaxAccurate = 1;
constexpr int kSoftmaxPerInstance = 0;
constexpr int kAlgorithms = 8;

/// cudnnConvolutionFwdAlgoPerf_t.
struct AlgorithmTime {
  int algorithm;
  int status;
  float milliseconds;
  size_t memory;
  int determinism;
  int math;
  int reserved[3];
};

struct CudnnApi {
  int (*create)(void**) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*set_stream)(void*, void*) = nullptr;
  int (*create_tensor)(void**) = nullptr;
  int (*destroy_tensor)(void*) = nullptr;
  int (*set_tensor)(void*, int, int, int, int, int, int) = nullptr;
  int (*create_filter)(void**) = nullptr;
  int (*destroy_filter)(void*) = nullptr;
  int (*set_filter)(void*, int, int, int, int, int, int) = nullptr;
  int (*create_convolution)(void**) = nullptr;
  int (*destroy_convolution)(void*) = nullptr;
  int (*set_convolution)(void*, int, int, int, int, int, int, int, int) = nullptr;
  int (*set_math)(void*, int) = nullptr;
  int (*find_algorithm)(void*, void*, void*, void*, void*, int, int*, AlgorithmTime*) = nullptr;
  int (*convolve)(void*, const void*, void*, const void*, void*, const void*, void*, int, void*,
                  size_t, const void*, void*, void*) = nullptr;
  int (*softmax)(void*, int, int, const void*, void*, const void*, const void*, void*,
                 void*) = nullptr;
  int (*softmax_backward)(void*, int, int, const void*, void*, const void*, void*, const void*,
                          const void*, void*, void*) = nullptr;

  static Result<CudnnApi> Open() {
    ATUNNER_TRY(const DynamicLibrary library, OpenCudaLibrary(CudaLibrary::kCudnn));
    CudnnApi api;
    ATUNNER_RETURN_IF_ERROR(library.Bind(api.create, "cudnnCreate"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(api.destroy, "cudnnDestroy"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(api.set_stream, "cudnnSetStream"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(api.create_tensor, "cudnnCreateTensorDescriptor"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(api.destroy_tensor, "cudnnDestroyTensorDescriptor"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(api.set_tensor, "cudnnSetTensor4dDescriptor"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(api.create_filter, "cudnnCreateFilterDescriptor"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(api.destroy_filter, "cudnnDestroyFilterDescriptor"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(api.set_filter, "cudnnSetFilter4dDescriptor"));
    ATUNNER_RETURN_IF_ERROR(
        library.Bind(api.create_convolution, "cudnnCreateConvolutionDescriptor"));
    ATUNNER_RETURN_IF_ERROR(
        library.Bind(api.destroy_convolution, "cudnnDestroyConvolutionDescriptor"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(api.set_convolution, "cudnnSetConvolution2dDescriptor"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(api.set_math, "cudnnSetConvolutionMathType"));
    ATUNNER_RETURN_IF_ERROR(
        library.Bind(api.find_algorithm, "cudnnFindConvolutionForwardAlgorithm"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(api.convolve, "cudnnConvolutionForward"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(api.softmax, "cudnnSoftmaxForward"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(api.softmax_backward, "cudnnSoftmaxBackward"));
    return api;
  }
};

Status Check(int status, const char* what) {
  if (status == 0) return {};
  return Fail(ErrorCode::kUnsupported,
              std::string("cuDNN refuses ") + what + " (status " + std::to_string(status) + ")");
}

int DataType(DType dtype) {
  return dtype == DType::kFloat32   ? kDataFloat
         : dtype == DType::kFloat16 ? kDataHalf
                                    : kDataBfloat16;
}

/// Base of both operators: the library handle, and tensor descriptors (rows × cols are described as
/// N × C images).
class CudnnKernel : public TimedKernel {
 public:
  ~CudnnKernel() override {
    for (void* tensor : tensors_) api_.destroy_tensor(tensor);
    if (handle_) api_.destroy(handle_);
  }
  Status Renew() override { return {}; }

 protected:
  Status Open(TimedDevice& device, const KernelSpec& spec) {
    ATUNNER_RETURN_IF_ERROR(CheckExtents("cuDNN", spec));
    ATUNNER_TRY(api_, CudnnApi::Open());
    type_ = DataType(spec.compute_dtype);
    if (api_.create(&handle_) != 0) return Fail(ErrorCode::kUnavailable, "cuDNN does not start");
    return Check(api_.set_stream(handle_, device.stream()), "the stream");
  }
  Result<void*> Tensor(int n, int c, int h, int w) {
    void* tensor = nullptr;
    ATUNNER_RETURN_IF_ERROR(Check(api_.create_tensor(&tensor), "a tensor"));
    tensors_.push_back(tensor);
    ATUNNER_RETURN_IF_ERROR(
        Check(api_.set_tensor(tensor, kTensorNhwc, type_, n, c, h, w), "the tensor's shape"));
    return tensor;
  }
  static LaunchOutcome Outcome(int status) {
    if (status == 0) return {};
    return {LaunchOutcome::Kind::kRefused, "cuDNN status " + std::to_string(status), {}, 0};
  }

  CudnnApi api_;
  void* handle_ = nullptr;
  int type_ = 0;
  const float one_ = 1;
  const float zero_ = 0;

 private:
  std::vector<void*> tensors_;
};

class CudnnConvolution : public CudnnKernel {
 public:
  ~CudnnConvolution() override {
    if (filter_) api_.destroy_filter(filter_);
    if (convolution_) api_.destroy_convolution(convolution_);
  }

  Status Describe(TimedDevice& device, const KernelSpec& spec) {
    const auto at = [&](const char* name) { return static_cast<int>(spec.dims.at(name)); };
    const auto attribute = [&](const char* name) {
      return static_cast<int>(ToDouble(spec.attributes.at(name)));
    };
    ATUNNER_RETURN_IF_ERROR(Open(device, spec));
    ATUNNER_TRY(x_, Tensor(at("N"), at("C"), at("H"), at("W")));
    ATUNNER_TRY(y_, Tensor(at("N"), at("K"), at("P"), at("Q")));
    ATUNNER_RETURN_IF_ERROR(Check(api_.create_filter(&filter_), "a filter"));
    ATUNNER_RETURN_IF_ERROR(
        Check(api_.set_filter(filter_, type_, kTensorNhwc, at("K"), at("C"), at("R"), at("S")),
              "the filter's shape"));
    ATUNNER_RETURN_IF_ERROR(Check(api_.create_convolution(&convolution_), "a convolution"));
    const int padding = attribute("padding");
    const int stride = attribute("stride");
    const int dilation = attribute("dilation");
    ATUNNER_RETURN_IF_ERROR(
        Check(api_.set_convolution(convolution_, padding, padding, stride, stride, dilation,
                                   dilation, kCrossCorrelation, kDataFloat),
              "the convolution"));
    const int math = spec.compute_dtype == DType::kFloat32 ? kFmaMath : kTensorOpMath;
    ATUNNER_RETURN_IF_ERROR(Check(api_.set_math(convolution_, math), "the arithmetic"));
    return ChooseAlgorithm(device);
  }

  LaunchOutcome Enqueue(const TaskBuffers& buffers) override {
    return Outcome(api_.convolve(handle_, &one_, x_, PointerTo(buffers, "x"), filter_,
                                 PointerTo(buffers, "w"), convolution_, algorithm_, WorkspaceAt(),
                                 workspace_bytes_, &zero_, y_, PointerTo(buffers, "y")));
  }

 private:
  Status ChooseAlgorithm(TimedDevice& device) {
    AlgorithmTime times[kAlgorithms];
    int found = 0;
    ATUNNER_RETURN_IF_ERROR(Check(
        api_.find_algorithm(handle_, x_, filter_, convolution_, y_, kAlgorithms, &found, times),
        "the task"));
    if (found == 0 || times[0].status != 0)
      return Check(found == 0 ? 1 : times[0].status, "the task");
    algorithm_ = times[0].algorithm;
    workspace_bytes_ = times[0].memory;
    if (workspace_bytes_ == 0) return {};
    ATUNNER_TRY(workspace_, device.Allocate(workspace_bytes_));
    return {};
  }
  void* WorkspaceAt() const {
    return workspace_ ? reinterpret_cast<void*>(workspace_->address())
                      : nullptr;  // NOLINT(performance-no-int-to-ptr)
  }

  void* x_ = nullptr;
  void* y_ = nullptr;
  void* filter_ = nullptr;
  void* convolution_ = nullptr;
  int algorithm_ = 0;
  size_t workspace_bytes_ = 0;
  std::unique_ptr<Buffer> workspace_;
};

class CudnnSoftmax : public CudnnKernel {
 public:
  Status Describe(TimedDevice& device, const KernelSpec& spec) {
    ATUNNER_RETURN_IF_ERROR(Open(device, spec));
    backward_ = spec.name == "softmax_backward";
    ATUNNER_TRY(rows_, Tensor(static_cast<int>(spec.dims.at("rows")),
                              static_cast<int>(spec.dims.at("cols")), 1, 1));
    return {};
  }

  LaunchOutcome Enqueue(const TaskBuffers& buffers) override {
    const auto pointer = [&](const char* name) { return PointerTo(buffers, name); };
    if (!backward_) {
      return Outcome(api_.softmax(handle_, kSoftmaxAccurate, kSoftmaxPerInstance, &one_, rows_,
                                  pointer("x"), &zero_, rows_, pointer("y")));
    }
    return Outcome(api_.softmax_backward(handle_, kSoftmaxAccurate, kSoftmaxPerInstance, &one_,
                                         rows_, pointer("y"), rows_, pointer("dy"), &zero_, rows_,
                                         pointer("dx")));
  }

 private:
  void* rows_ = nullptr;
  bool backward_ = false;
};

template <class Kind>
Result<std::unique_ptr<TimedKernel>> Make(TimedDevice& device, const KernelSpec& spec) {
  auto kernel = std::make_unique<Kind>();
  ATUNNER_RETURN_IF_ERROR(kernel->Describe(device, spec));
  return kernel;
}

}  // namespace

Result<std::unique_ptr<TimedKernel>> MakeCudnnConvolution(TimedDevice& device,
                                                          const KernelSpec& spec) {
  return Make<CudnnConvolution>(device, spec);
}
Result<std::unique_ptr<TimedKernel>> MakeCudnnSoftmax(TimedDevice& device, const KernelSpec& spec) {
  return Make<CudnnSoftmax>(device, spec);
}

}  // namespace atunner
