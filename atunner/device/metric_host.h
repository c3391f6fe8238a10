// What CUPTI knows of the metrics of a chip. Needs no GPU, so tests can ask for any chip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "atunner/device/cupti.h"

namespace atunner {

/// What a GPU must be told to count some metrics.
struct MetricConfig {
  std::vector<uint8_t> image;
  size_t passes = 0;  ///< times that the launches are repeated
};

class MetricHost {
 public:
  /// `chip` as ChipsOfCupti names it. kUnavailable for another one.
  static Result<std::unique_ptr<MetricHost>> Open(const std::string& chip);
  ~MetricHost();
  MetricHost(const MetricHost&) = delete;
  MetricHost& operator=(const MetricHost&) = delete;

  /// Once for each object. kUnavailable where the chip lacks one of the metrics.
  Result<MetricConfig> Configure(std::span<const std::string> metrics);
  /// The metrics of one range of a decoded image, in their order; NaN where a value is undefined.
  Result<std::vector<double>> Evaluate(std::span<const uint8_t> data, size_t range,
                                       std::span<const std::string> metrics) const;

 private:
  MetricHost(const Cupti& api, cupti::HostObject* host) : api_(api), host_(host) {}

  const Cupti& api_;
  cupti::HostObject* host_;
};

/// The metrics among `metrics` that the chip has, in their order.
Result<std::vector<std::string>> MetricsOf(const std::string& chip,
                                           std::span<const std::string> metrics);

/// The names as C strings, which must not outlive `names`.
std::vector<const char*> CStrings(std::span<const std::string> names);

}  // namespace atunner
