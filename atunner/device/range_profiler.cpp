#include "atunner/device/range_profiler.h"

#include <cstdint>
#include <memory>
#include <utility>

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
  static Result<std::unique_ptr<Session>> Open(const Cupti& api) {
    cupti::RangeEnable enable;  // no context = the current one
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

}  // namespace

Result<std::string> ChipOf(int device) {
  ATUNNER_TRY(const Cupti* api, Started());
  cupti::ChipName chip;
  chip.device = static_cast<size_t>(device);
  ATUNNER_RETURN_IF_ERROR(api->Check(api->chip_name(&chip), "name the GPU's chip"));
  return std::string(chip.name);
}

Result<MetricValues> CountMetrics(int device, std::span<const std::string> metrics,
                                  const CountedRun& run) {
  ATUNNER_TRY(const Cupti* api, Started());
  ATUNNER_TRY(const std::string chip, ChipOf(device));
  MetricValues values;
  ATUNNER_TRY(values.metrics, MetricsOf(chip, metrics));
  if (values.metrics.empty())
    return Fail(ErrorCode::kUnavailable, "CUPTI knows no metrics of the chip " + chip, api->path);
  ATUNNER_TRY(const auto host, MetricHost::Open(chip));
  ATUNNER_TRY(const MetricConfig config, host->Configure(values.metrics));
  ATUNNER_TRY(const auto session, Session::Open(*api));
  ATUNNER_RETURN_IF_ERROR(session->Configure(values.metrics, config, run.launches));
  for (bool last = false; !last; ++values.passes) {
    if (values.passes > 2 * config.passes)  // more than the plan says
      return Fail(ErrorCode::kUnavailable, "CUPTI asks for ever more passes", api->path);
    ATUNNER_TRY(last, session->Pass(run));
  }
  ATUNNER_RETURN_IF_ERROR(session->Decode());
  ATUNNER_TRY(const size_t ranges, session->Ranges());
  for (size_t i = 0; i < ranges; ++i) {
    ATUNNER_TRY(auto row, host->Evaluate(session->data(), i, values.metrics));
    values.of_launch.push_back(std::move(row));
  }
  if (ranges != run.launches)
    return Fail(ErrorCode::kUnavailable, "CUPTI counted " + std::to_string(ranges) +
                                             " launches of " + std::to_string(run.launches));
  return values;
}

}  // namespace atunner
