#include "atunner/device/range_profiler.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "atunner/base/cuda_abi.h"
#include "atunner/base/dylib.h"
#include "atunner/device/cupti.h"
#include "atunner/device/metric_host.h"

namespace atunner {
namespace {

Result<const Cupti*> Started() {
  const Result<Cupti>& api = SharedCupti();
  if (!api) return std::unexpected(api.error());
  cupti::Empty start;
  ATUNNER_RETURN_IF_ERROR(api->Check(api->start_up(&start), "start"));
  return &*api;
}

/// The range profiler of the current context while it is enabled.
class Session {
 public:
  static Result<std::unique_ptr<Session>> Open(const Cupti& api, cuda::Context context) {
    cupti::RangeEnable enable;
    enable.context = context;
    ATUNNER_RETURN_IF_ERROR(api.Check(api.enable(&enable), "enable the range profiler"));
    return std::unique_ptr<Session>(new Session(api, enable.profiler));
  }
  ~Session() {
    cupti::RangeObject disable;
    disable.profiler = profiler_;
    api_.disable(&disable);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Status Configure(std::span<const std::string> metrics, const MetricConfig& config,
                   size_t launches) {
    std::vector<const char*> names = CStrings(metrics);
    cupti::DataSize size;
    size.profiler = profiler_;
    size.metrics = names.data();
    size.count = names.size();
    size.ranges = launches;
    size.tree_nodes = static_cast<uint32_t>(launches);
    ATUNNER_RETURN_IF_ERROR(api_.Check(api_.data_size(&size), "size its data"));
    data_.resize(size.bytes);
    cupti::DataInitialize initialize;
    initialize.profiler = profiler_;
    initialize.bytes = data_.size();
    initialize.data = data_.data();
    ATUNNER_RETURN_IF_ERROR(api_.Check(api_.data_initialize(&initialize), "prepare its data"));
    cupti::RangeConfig set;
    set.profiler = profiler_;
    set.config_bytes = config.image.size();
    set.config = config.image.data();
    set.data_bytes = data_.size();
    set.data = data_.data();
    set.ranges_per_pass = launches;
    return api_.Check(api_.configure(&set), "configure the range profiler");
  }

  /// One pass; true after the last one.
  Result<bool> Pass(const CountedRun& run) {
    ATUNNER_RETURN_IF_ERROR(run.prepare());
    cupti::RangeObject start;
    start.profiler = profiler_;
    ATUNNER_RETURN_IF_ERROR(api_.Check(api_.start(&start), "start a pass"));
    const Status launched = run.launch();
    cupti::RangeStop stop;
    stop.profiler = profiler_;
    const Status stopped = api_.Check(api_.stop(&stop), "end a pass");
    if (!launched) return std::unexpected(launched.error());
    if (!stopped) return std::unexpected(stopped.error());
    return stop.all_passes != 0;
  }

  Status Decode() {
    cupti::DecodeData decode;
    decode.profiler = profiler_;
    return api_.Check(api_.decode(&decode), "decode its data");
  }

  Result<size_t> Ranges() const {
    cupti::DataInfo info;
    info.data = data_.data();
    info.bytes = data_.size();
    ATUNNER_RETURN_IF_ERROR(api_.Check(api_.data_info(&info), "describe its data"));
    return info.ranges;
  }
  std::span<const uint8_t> data() const { return data_; }

 private:
  Session(const Cupti& api, cupti::ProfilerObject* profiler) : api_(api), profiler_(profiler) {}

  const Cupti& api_;
  cupti::ProfilerObject* profiler_;
  std::vector<uint8_t> data_;
};

/// The GPU and the context of the calling thread.
struct Current {
  cuda::Context context = nullptr;
  std::string chip;  ///< as CUPTI names it: "GH100"
};

Result<Current> FindCurrent(const Cupti& api) {
  cuda::Result (*context)(cuda::Context*) = nullptr;
  cuda::Result (*device)(cuda::Device*) = nullptr;
  ATUNNER_TRY(const DynamicLibrary driver, OpenCudaLibrary(CudaLibrary::kDriver));
  ATUNNER_RETURN_IF_ERROR(driver.Bind(context, "cuCtxGetCurrent"));
  ATUNNER_RETURN_IF_ERROR(driver.Bind(device, "cuCtxGetDevice"));
  Current current;
  cuda::Device number = 0;
  if (context(&current.context) != cuda::kSuccess || current.context == nullptr ||
      device(&number) != cuda::kSuccess)
    return Fail(ErrorCode::kUnavailable, "no GPU is in use on this thread");
  cupti::ChipName name;
  name.device = static_cast<size_t>(number);
  ATUNNER_RETURN_IF_ERROR(api.Check(api.chip_name(&name), "name the GPU's chip"));
  current.chip = name.name;
  return current;
}

/// What the decoded image holds, launch by launch.
Status Evaluate(const MetricHost& host, const Session& session, MetricValues& values) {
  ATUNNER_TRY(const size_t ranges, session.Ranges());
  for (size_t i = 0; i < ranges; ++i) {
    ATUNNER_TRY(auto row, host.Evaluate(session.data(), i, values.metrics));
    values.of_launch.push_back(std::move(row));
  }
  return {};
}

}  // namespace

Result<MetricValues> CountMetrics(std::span<const std::string> metrics, const CountedRun& run) {
  ATUNNER_TRY(const Cupti* api, Started());
  ATUNNER_TRY(const Current current, FindCurrent(*api));
  MetricValues values;
  ATUNNER_TRY(values.metrics, MetricsOf(current.chip, metrics));
  if (values.metrics.empty())
    return Fail(ErrorCode::kUnavailable, "CUPTI knows no metrics of the chip " + current.chip,
                api->path);
  ATUNNER_TRY(const auto host, MetricHost::Open(current.chip));
  ATUNNER_TRY(const MetricConfig config, host->Configure(values.metrics));
  ATUNNER_TRY(const auto session, Session::Open(*api, current.context));
  ATUNNER_RETURN_IF_ERROR(session->Configure(values.metrics, config, run.launches));
  for (bool last = false; !last; ++values.passes) {
    if (values.passes > 2 * config.passes)  // more than the plan says
      return Fail(ErrorCode::kUnavailable, "CUPTI asks for ever more passes", api->path);
    ATUNNER_TRY(last, session->Pass(run));
  }
  ATUNNER_RETURN_IF_ERROR(session->Decode());
  ATUNNER_RETURN_IF_ERROR(Evaluate(*host, *session, values));
  if (values.of_launch.size() == run.launches) return values;
  return Fail(ErrorCode::kUnavailable, "CUPTI counted " + std::to_string(values.of_launch.size()) +
                                           " launches of " + std::to_string(run.launches));
}

}  // namespace atunner
