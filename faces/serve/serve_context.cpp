#include "faces/serve/serve_context.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "atunner/base/clock.h"

namespace atunner::serve {
namespace {

/// A worker that was not heard for so long is not listed.
constexpr double kListedSeconds = 60;
constexpr size_t kMostTexts = 500;
constexpr std::streamoff kAuditTail = 1 << 20;  // bytes at the end that are shown

}  // namespace

void Log::Write(const char* level, const char* message, Json fields) {
  Json line{{"time", UtcTimestamp()}, {"level", level}, {"message", message}};
  if (fields.is_object()) line.update(fields);
  const std::string text = DumpJson(line) + "\n";
  const std::scoped_lock lock(mutex_);
  std::fputs(text.c_str(), stderr);
}

Result<std::unique_ptr<AuditLog>> AuditLog::Open(const Path& file) {
  const int opened = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (opened < 0)
    return Fail(ErrorCode::kUnavailable,
                std::string("cannot write the audit log: ") + std::strerror(errno), file.string());
  return std::unique_ptr<AuditLog>(new AuditLog(opened, file));
}

AuditLog::~AuditLog() { ::close(file_); }

void AuditLog::Write(Json fields) {
  Json line{{"time", UtcTimestamp()}};
  line.update(fields);
  const std::string text = DumpJson(line) + "\n";
  // Lines of several threads do not mix: each is one write to a file opened with O_APPEND.
  (void)!::write(file_, text.data(), text.size());
}

Result<Json> AuditLog::Last(size_t most) const {
  std::ifstream file(path_, std::ios::binary | std::ios::ate);
  if (!file) return Fail(ErrorCode::kUnavailable, "cannot read the audit log", path_.string());
  const std::streamoff size = file.tellg();
  file.seekg(size > kAuditTail ? size - kAuditTail : 0);
  std::string line;
  if (size > kAuditTail) std::getline(file, line);  // the rest of one that began before
  std::vector<Json> lines;
  while (std::getline(file, line)) {
    if (auto entry = ParseJson(line)) lines.push_back(*std::move(entry));
  }
  if (lines.size() > most) lines.erase(lines.begin(), lines.end() - static_cast<ptrdiff_t>(most));
  std::ranges::reverse(lines);
  return Json(std::move(lines));
}

std::string JobTexts::Get(const queue::Job& job, const std::function<std::string()>& make) {
  {
    const std::scoped_lock lock(mutex_);
    const auto found = entries_.find(job.id);
    if (found != entries_.end() && found->second.version == job.version) return found->second.text;
  }
  std::string text = make();
  const std::scoped_lock lock(mutex_);
  if (entries_.size() >= kMostTexts) entries_.clear();
  entries_[job.id] = {job.version, text};
  return text;
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
    if (ago > kListedSeconds) continue;
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
