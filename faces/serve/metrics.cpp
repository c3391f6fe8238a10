#include "faces/serve/metrics.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace atunner::serve {
namespace {

constexpr std::pair<std::string_view, std::string_view> kCounters[] = {
    {"atunner_http_requests_total", "Requests by status."},
    {"atunner_jobs_submitted_total", "Jobs that were submitted."},
    {"atunner_leases_total", "Jobs that were leased to workers."},
    {"atunner_leases_expired_total", "Jobs that were taken from workers that did not answer."},
    {"atunner_trials_total", "Trials by verdict."},
    {"atunner_compile_seconds_total",
     "Seconds of compiling; of a cached result, those it took once."},
    {"atunner_judge_seconds_total", "Seconds that workers judged candidates."},
    {"atunner_uploaded_bytes_total", "Bytes of uploads."},
    {"atunner_refused_total", "Requests without a valid token or scope."},
    {"atunner_spans_total", "Spans of traces by what became of them."}};

std::string Samples(const std::string& name, const std::map<std::string, double>& samples) {
  std::string text;
  for (const auto& [labels, value] : samples) text += fmt::format("{}{} {}\n", name, labels, value);
  return text;
}

}  // namespace

void Metrics::Add(const std::string& name, const std::string& labels, double value) {
  const std::scoped_lock lock(mutex_);
  counters_[name][labels] += value;
}

std::string Metrics::Text() const {
  const std::scoped_lock lock(mutex_);
  std::string text;
  for (const auto& [name, help] : kCounters) {
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} counter\n", name, help);
    const auto found = counters_.find(std::string(name));
    text += found == counters_.end() ? fmt::format("{} 0\n", name)
                                     : Samples(found->first, found->second);
  }
  return text;
}

std::string Metrics::Gauge(const std::string& name, const std::string& help,
                           const std::map<std::string, double>& samples) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name, help) + Samples(name, samples);
}

std::string Label(const std::string& name, const std::string& value) {
  std::string escaped;
  for (const char c : value) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return "{" + name + "=\"" + escaped + "\"}";
}

}  // namespace atunner::serve
