#include "atunner/measure/nccl_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "atunner/base/dylib.h"

namespace atunner {
namespace {

using planning::Collective;
using planning::CommChoice;
using DevicePointer = unsigned long long;

constexpr int kFloat32 = 7, kSum = 0;  ///< ncclDataType_t, ncclRedOp_t

struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*count)(int*) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*alloc)(DevicePointer*, size_t) = nullptr;
  int (*fill)(DevicePointer, unsigned char, size_t) = nullptr;
  int (*stream_create)(void**, unsigned) = nullptr;
  int (*stream_wait)(void*) = nullptr;
  int (*event_create)(void**, unsigned) = nullptr;
  int (*event_record)(void*, void*) = nullptr;
  int (*event_wait)(void*) = nullptr;
  int (*event_elapsed)(float*, void*, void*) = nullptr;

  Status Bind(const DynamicLibrary& library) {
    ATUNNER_RETURN_IF_ERROR(library.Bind(init, "cuInit"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(count, "cuDeviceGetCount"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(name, "cuDeviceGetName"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(retain, "cuDevicePrimaryCtxRetain"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(set_current, "cuCtxSetCurrent"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(alloc, "cuMemAlloc_v2"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(fill, "cuMemsetD8_v2"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(stream_create, "cuStreamCreate"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(stream_wait, "cuStreamSynchronize"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(event_create, "cuEventCreate"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(event_record, "cuEventRecord"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(event_wait, "cuEventSynchronize"));
    return library.Bind(event_elapsed, "cuEventElapsedTime");
  }
};

using Reduction = int (*)(const void*, void*, size_t, int, int, void*, void*);

struct Nccl {
  int (*version)(int*) = nullptr;
  int (*init_all)(void**, int, const int*) = nullptr;
  Reduction all_reduce = nullptr, reduce_scatter = nullptr;
  int (*all_gather)(const void*, void*, size_t, int, void*, void*) = nullptr;
  const char* (*error)(int) = nullptr;

  Status Bind(const DynamicLibrary& library) {
    ATUNNER_RETURN_IF_ERROR(library.Bind(version, "ncclGetVersion"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(init_all, "ncclCommInitAll"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(all_reduce, "ncclAllReduce"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(reduce_scatter, "ncclReduceScatter"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(all_gather, "ncclAllGather"));
    return library.Bind(error, "ncclGetErrorString");
  }
};

struct Plugin {
  void (*force)(int, int, int) = nullptr;
  int (*taken)() = nullptr;

  Status Bind(const DynamicLibrary& library) {
    ATUNNER_RETURN_IF_ERROR(library.Bind(force, "atunner_nccl_force"));
    return library.Bind(taken, "atunner_nccl_taken");
  }
};

Status CheckCuda(int result, const char* call) {
  if (result == 0) return {};
  return Fail(ErrorCode::kUnavailable, fmt::format("{} failed with CUDA error {}", call, result));
}

struct Order {
  Collective collective = Collective::kAllReduce;
  int64_t bytes = 0;
  int count = 0;
  bool end = false;
};

/// One GPU and its thread's state.
struct Gpu {
  void* context = nullptr;
  void* comm = nullptr;
  void* stream = nullptr;
  void* begin = nullptr;
  void* end = nullptr;
  DevicePointer from = 0, to = 0;
  double us = 0;
  Status status;
};

void SetEnvironment(const Path& plugin) {
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS",
                           "NCCL_MIN_CTAS", "NCCL_MAX_CTAS"})
    ::unsetenv(name);
  ::setenv("NCCL_NVLS_ENABLE", "0", 1);
  ::setenv("NCCL_TUNER_PLUGIN", plugin.c_str(), 1);
  ::setenv("NCCL_TUNER_CONFIG_FILE", "/dev/null", 1);
}

class Runner : public NcclRunner {
 public:
  explicit Runner(int gpus) : gpus_(static_cast<size_t>(gpus)), turn_(gpus + 1) {}
  ~Runner() override {
    if (threads_.empty()) return;
    order_.end = true;
    turn_.arrive_and_wait();
  }

  Status Open(const NcclRequest& request) {
    SetEnvironment(request.plugin);
    ATUNNER_TRY(const DynamicLibrary driver, OpenCudaLibrary(CudaLibrary::kDriver));
    ATUNNER_RETURN_IF_ERROR(driver_.Bind(driver));
    ATUNNER_RETURN_IF_ERROR(CheckCuda(driver_.init(0), "cuInit"));
    const std::array<std::string, 1> plugin = {request.plugin.string()};
    ATUNNER_TRY(const DynamicLibrary opened, DynamicLibrary::Open(plugin));
    ATUNNER_RETURN_IF_ERROR(plugin_.Bind(opened));
    std::vector<std::string> names = {"libnccl.so.2"};
    if (!request.library.empty()) names = {request.library};
    ATUNNER_TRY(const DynamicLibrary nccl, DynamicLibrary::Open(names, CudaLibraryFolders()));
    ATUNNER_RETURN_IF_ERROR(nccl_.Bind(nccl));
    ATUNNER_RETURN_IF_ERROR(OpenGpus(request));
    return Start();
  }

  Result<std::optional<double>> Run(Collective collective, int64_t bytes,
                                    const std::optional<CommChoice>& choice, int count) override {
    order_ = {.collective = collective, .bytes = bytes, .count = count};
    if (choice)
      plugin_.force(static_cast<int>(choice->algorithm), static_cast<int>(choice->protocol),
                    choice->channels);
    else
      plugin_.force(-1, 0, 0);
    turn_.arrive_and_wait();
    turn_.arrive_and_wait();
    double us = 0;
    for (const Gpu& gpu : gpus_) {
      if (!gpu.status) return std::unexpected(gpu.status.error());
      us = std::max(us, gpu.us);
    }
    if (choice && plugin_.taken() == 0) return std::nullopt;
    return us;
  }

  const std::string& device() const override { return device_; }
  const std::string& version() const override { return version_; }

 private:
  Status OpenGpus(const NcclRequest& request) {
    int count = 0, version = 0;
    ATUNNER_RETURN_IF_ERROR(CheckCuda(driver_.count(&count), "cuDeviceGetCount"));
    if (count < request.gpus)
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("{} GPUs are asked for, {} are here", request.gpus, count));
    std::array<char, 256> name{};
    ATUNNER_RETURN_IF_ERROR(CheckCuda(driver_.name(name.data(), 255, 0), "cuDeviceGetName"));
    device_ = name.data();
    ATUNNER_RETURN_IF_ERROR(CheckNccl(nccl_.version(&version), "ncclGetVersion"));
    version_ = fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
    for (size_t i = 0; i < gpus_.size(); ++i)
      ATUNNER_RETURN_IF_ERROR(OpenGpu(static_cast<int>(i), request.most_bytes));
    std::vector<void*> comms(gpus_.size());
    ATUNNER_RETURN_IF_ERROR(
        CheckNccl(nccl_.init_all(comms.data(), request.gpus, nullptr), "ncclCommInitAll"));
    for (size_t i = 0; i < gpus_.size(); ++i) gpus_[i].comm = comms[i];
    return {};
  }

  Status OpenGpu(int device, int64_t bytes) {
    Gpu& gpu = gpus_[static_cast<size_t>(device)];
    const auto size = static_cast<size_t>(bytes);
    ATUNNER_RETURN_IF_ERROR(
        CheckCuda(driver_.retain(&gpu.context, device), "cuDevicePrimaryCtxRetain"));
    ATUNNER_RETURN_IF_ERROR(CheckCuda(driver_.set_current(gpu.context), "cuCtxSetCurrent"));
    ATUNNER_RETURN_IF_ERROR(CheckCuda(driver_.stream_create(&gpu.stream, 1), "cuStreamCreate"));
    ATUNNER_RETURN_IF_ERROR(CheckCuda(driver_.event_create(&gpu.begin, 0), "cuEventCreate"));
    ATUNNER_RETURN_IF_ERROR(CheckCuda(driver_.event_create(&gpu.end, 0), "cuEventCreate"));
    for (DevicePointer* buffer : {&gpu.from, &gpu.to}) {
      ATUNNER_RETURN_IF_ERROR(CheckCuda(driver_.alloc(buffer, size), "cuMemAlloc"));
      ATUNNER_RETURN_IF_ERROR(CheckCuda(driver_.fill(*buffer, 0, size), "cuMemsetD8"));
    }
    return {};
  }

  Status Start() {
    for (Gpu& gpu : gpus_) threads_.emplace_back([this, &gpu] { Work(gpu); });
    return {};
  }

  void Work(Gpu& gpu) {
    gpu.status = CheckCuda(driver_.set_current(gpu.context), "cuCtxSetCurrent");
    for (;;) {
      turn_.arrive_and_wait();
      if (order_.end) return;
      if (gpu.status) gpu.status = Timed(gpu);
      turn_.arrive_and_wait();
    }
  }

  /// One collective that does not count, then the timed ones.
  Status Timed(Gpu& gpu) {
    ATUNNER_RETURN_IF_ERROR(Launch(gpu));
    ATUNNER_RETURN_IF_ERROR(
        CheckCuda(driver_.event_record(gpu.begin, gpu.stream), "cuEventRecord"));
    for (int i = 0; i < order_.count; ++i) ATUNNER_RETURN_IF_ERROR(Launch(gpu));
    ATUNNER_RETURN_IF_ERROR(CheckCuda(driver_.event_record(gpu.end, gpu.stream), "cuEventRecord"));
    ATUNNER_RETURN_IF_ERROR(CheckCuda(driver_.event_wait(gpu.end), "cuEventSynchronize"));
    float ms = 0;
    ATUNNER_RETURN_IF_ERROR(
        CheckCuda(driver_.event_elapsed(&ms, gpu.begin, gpu.end), "cuEventElapsedTime"));
    gpu.us = 1000.0 * static_cast<double>(ms) / order_.count;
    return {};
  }

  Status Launch(Gpu& gpu) {
    const size_t count = static_cast<size_t>(order_.bytes) / sizeof(float);
    const size_t shard = count / gpus_.size();
    auto* const from = reinterpret_cast<void*>(gpu.from);
    auto* const to = reinterpret_cast<void*>(gpu.to);
    switch (order_.collective) {
      case Collective::kAllGather:
        return CheckNccl(nccl_.all_gather(from, to, shard, kFloat32, gpu.comm, gpu.stream),
                         "ncclAllGather");
      case Collective::kReduceScatter:
        return CheckNccl(
            nccl_.reduce_scatter(from, to, shard, kFloat32, kSum, gpu.comm, gpu.stream),
            "ncclReduceScatter");
      case Collective::kAllReduce:
        return CheckNccl(nccl_.all_reduce(from, from, count, kFloat32, kSum, gpu.comm, gpu.stream),
                         "ncclAllReduce");
      case Collective::kBroadcast:
      case Collective::kReduce:
        break;
    }
    return Fail(ErrorCode::kUnsupported,
                "only allreduce, allgather and reducescatter are measured");
  }

  Status CheckNccl(int result, const char* call) const {
    if (result == 0) return {};
    return Fail(ErrorCode::kUnavailable, fmt::format("{}: {}", call, nccl_.error(result)));
  }

  Driver driver_;
  Nccl nccl_;
  Plugin plugin_;
  std::vector<Gpu> gpus_;
  std::string device_, version_;
  Order order_;
  std::barrier<> turn_;
  std::vector<std::jthread> threads_;  ///< last: they end first
};

}  // namespace

Result<std::unique_ptr<NcclRunner>> NcclRunner::Open(const NcclRequest& request) {
  if (request.gpus < 2 || request.gpus > 16) return Invalid("must be from 2 to 16", "request.gpus");
  auto runner = std::make_unique<Runner>(request.gpus);
  ATUNNER_RETURN_IF_ERROR(runner->Open(request));
  return runner;
}

}  // namespace atunner
