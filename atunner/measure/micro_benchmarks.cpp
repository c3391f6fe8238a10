#include "atunner/measure/micro_benchmarks.h"

#include <utility>

#include "atunner/measure/statistics.h"

namespace atunner {
namespace {

constexpr int kSamples = 9;
constexpr int kWarmUp = 2;
constexpr uint64_t kSinkBytes = 256;

}  // namespace

KernelArg IntArg(int64_t value) {
  return KernelArg::Scalar(PackScalar(DType::kInt32, value).value());
}
KernelArg LongArg(int64_t value) {
  return KernelArg::Scalar(PackScalar(DType::kInt64, value).value());
}

Result<MicroBenchmarks> MicroBenchmarks::Make(TimedDevice& device, Compiler& compiler,
                                              const std::string& name, std::string_view text,
                                              const std::vector<std::string>& entries,
                                              uint64_t flushed) {
  const CompileRequest request{{.name = name,
                                .text = std::string(text),
                                .language = Language::kCudaCpp,
                                .defines = {},
                                .options = {},
                                .include_folders = {}},
                               entries,
                               device.arch()};
  ATUNNER_TRY(CompileOutcome outcome, compiler.Compile(request));
  if (!outcome.ok())
    return Fail(ErrorCode::kInternal,
                "the kernels of " + name + " do not compile: " + outcome.error);
  MicroBenchmarks made(device);
  ATUNNER_TRY(made.module_, device.Load(*outcome.module));
  ATUNNER_TRY(made.sink_, device.Allocate(kSinkBytes));
  if (flushed > 0) {
    ATUNNER_TRY(made.flushed_, device.Allocate(flushed));
  }
  ATUNNER_TRY(made.start_, device.CreateEvent());
  ATUNNER_TRY(made.end_, device.CreateEvent());
  return made;
}

Result<double> MicroBenchmarks::Time(const char* entry, uint32_t grid, uint32_t block,
                                     const std::vector<KernelArg>& args, int launches) const {
  const LaunchShape shape{{grid, 1, 1}, {block, 1, 1}, {1, 1, 1}, 0};
  std::vector<double> samples;
  for (int i = 0; i < kWarmUp + kSamples; ++i) {
    if (flushed_)
      ATUNNER_RETURN_IF_ERROR(device_->EnqueueFill(flushed_->address(), 0x5a, flushed_->bytes()));
    ATUNNER_RETURN_IF_ERROR(device_->Record(*start_));
    for (int launch = 0; launch < launches; ++launch) {
      const LaunchOutcome outcome = device_->Enqueue(*module_, entry, shape, args);
      if (outcome.kind != LaunchOutcome::Kind::kCompleted)
        return Fail(ErrorCode::kInternal, std::string(entry) + " does not run: " + outcome.message);
    }
    ATUNNER_RETURN_IF_ERROR(device_->Record(*end_));
    ATUNNER_TRY(const double ns, device_->ElapsedNs(*start_, *end_));
    if (i >= kWarmUp) samples.push_back(ns);
  }
  return Median(samples);
}

}  // namespace atunner
