// Counters of the server as Prometheus reads them.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace atunner::serve {

/// Safe to use from several threads.
class Metrics {
 public:
  /// `labels`: `{code="200"}` or "".
  void Add(const std::string& name, const std::string& labels, double value = 1);
  /// `# HELP`, `# TYPE` and the samples of all counters that Add names.
  std::string Text() const;
  /// A gauge with its head.
  static std::string Gauge(const std::string& name, const std::string& help,
                           const std::map<std::string, double>& samples);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::string, double>> counters_;
};

/// `{name="value"}` with the value escaped.
std::string Label(const std::string& name, const std::string& value);

}  // namespace atunner::serve
