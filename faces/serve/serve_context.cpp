#include "faces/serve/serve_context.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "atunner/base/clock.h"

namespace atunner::serve {
namespace {

constexpr double kForgetSeconds = 60;

}  // namespace

void Log::Write(const char* level, const char* message, Json fields) {
  Json line{{"time", UtcTimestamp()}, {"level", level}, {"message", message}};
  if (fields.is_object()) line.update(fields);
  const std::string text = DumpJson(line) + "\n";
  const std::scoped_lock lock(mutex_);
  std::fputs(text.c_str(), stderr);
}

void WorkerBook::Saw(const platform::WorkerDescription& worker, const std::string& job) {
  const std::scoped_lock lock(mutex_);
  entries_[worker.name] = {worker, job, SystemClock().Now()};
}

void WorkerBook::SawJob(const std::string& job) {
  const std::scoped_lock lock(mutex_);
  for (auto& [name, entry] : entries_) {
    if (entry.job == job) entry.seen = SystemClock().Now();
  }
}

void WorkerBook::Left(const std::string& job) {
  const std::scoped_lock lock(mutex_);
  for (auto& [name, entry] : entries_) {
    if (entry.job == job) entry.job.clear();
  }
}

Json WorkerBook::ToJson() const {
  const std::scoped_lock lock(mutex_);
  Json list = Json::array();
  for (const auto& [name, entry] : entries_) {
    const double ago = SystemClock().Now() - entry.seen;
    if (ago > kForgetSeconds) continue;
    list.push_back({{"name", name},
                    {"gpus", entry.worker.gpus},
                    {"labels", Json(entry.worker.labels)},
                    {"job", entry.job.empty() ? Json() : Json(entry.job)},
                    {"last_seen_seconds", ago}});
  }
  return list;
}

size_t WorkerBook::count() const { return ToJson().size(); }

}  // namespace atunner::serve
