#include "atunner/device/metric_host.h"

#include <limits>

namespace atunner {

std::vector<const char*> CStrings(std::span<const std::string> names) {
  std::vector<const char*> pointers;
  for (const std::string& name : names) pointers.push_back(name.c_str());
  return pointers;
}

Result<std::unique_ptr<MetricHost>> MetricHost::Open(const std::string& chip) {
  const Result<Cupti>& api = SharedCupti();
  if (!api) return std::unexpected(api.error());
  cupti::HostInitialize open;
  open.chip = chip.c_str();
  const std::string action = "describe the chip '" + chip + "'";
  ATUNNER_RETURN_IF_ERROR(api->Check(api->host_open(&open), action.c_str()));
  return std::unique_ptr<MetricHost>(new MetricHost(*api, open.host));
}

MetricHost::~MetricHost() {
  cupti::HostDeinitialize close;
  close.host = host_;
  api_.host_close(&close);
}

Result<MetricConfig> MetricHost::Configure(std::span<const std::string> metrics) {
  std::vector<const char*> names = CStrings(metrics);
  cupti::AddMetrics add;
  add.host = host_;
  add.metrics = names.data();
  add.count = names.size();
  ATUNNER_RETURN_IF_ERROR(api_.Check(api_.add_metrics(&add), "configure metrics"));
  cupti::ConfigSize size;
  size.host = host_;
  ATUNNER_RETURN_IF_ERROR(api_.Check(api_.config_size(&size), "configure metrics"));
  MetricConfig config;
  config.image.resize(size.bytes);
  cupti::ConfigImage image;
  image.host = host_;
  image.bytes = config.image.size();
  image.image = config.image.data();
  ATUNNER_RETURN_IF_ERROR(api_.Check(api_.config_image(&image), "configure metrics"));
  cupti::PassCount passes;
  passes.bytes = config.image.size();
  passes.image = config.image.data();
  ATUNNER_RETURN_IF_ERROR(api_.Check(api_.passes(&passes), "count passes"));
  config.passes = passes.passes;
  return config;
}

Result<std::vector<double>> MetricHost::Evaluate(std::span<const uint8_t> data, size_t range,
                                                 std::span<const std::string> metrics) const {
  std::vector<const char*> names = CStrings(metrics);
  std::vector<double> values(metrics.size(), std::numeric_limits<double>::quiet_NaN());
  cupti::EvaluateValues evaluate;
  evaluate.host = host_;
  evaluate.data = data.data();
  evaluate.bytes = data.size();
  evaluate.range = range;
  evaluate.metrics = names.data();
  evaluate.count = names.size();
  evaluate.values = values.data();
  ATUNNER_RETURN_IF_ERROR(api_.Check(api_.evaluate(&evaluate), "evaluate metrics"));
  return values;
}

Result<std::vector<std::string>> MetricsOf(const std::string& chip,
                                           std::span<const std::string> metrics) {
  ATUNNER_TRY(const auto all, MetricHost::Open(chip));
  if (all->Configure(metrics)) return std::vector<std::string>(metrics.begin(), metrics.end());
  std::vector<std::string> known;
  for (const std::string& metric : metrics) {
    ATUNNER_TRY(const auto host, MetricHost::Open(chip));
    if (host->Configure(std::span(&metric, 1))) known.push_back(metric);
  }
  return known;
}

}  // namespace atunner
