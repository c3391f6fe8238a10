#include "atunner/http/message.h"

#include <algorithm>
#include <cctype>

namespace atunner::http {
namespace {

constexpr size_t kMostWaiting = size_t{1} << 20;

bool SameName(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

void Headers::Set(std::string_view name, std::string value) {
  for (auto& [each, old] : list_) {
    if (SameName(each, name)) {
      old = std::move(value);
      return;
    }
  }
  list_.emplace_back(name, std::move(value));
}

std::string Headers::Get(std::string_view name) const {
  for (const auto& [each, value] : list_) {
    if (SameName(each, name)) return value;
  }
  return "";
}

bool Headers::Has(std::string_view name) const {
  return std::ranges::any_of(list_, [&](const auto& one) { return SameName(one.first, name); });
}

void Stream::Write(std::string_view bytes) {
  const std::scoped_lock lock(mutex_);
  if (finished_ || closed_) return;
  waiting_ += bytes;
  if (waiting_.size() > kMostWaiting) closed_ = true;
  if (wake_) wake_();
}

void Stream::Finish() {
  const std::scoped_lock lock(mutex_);
  finished_ = true;
  if (wake_) wake_();
}

bool Stream::closed() const {
  const std::scoped_lock lock(mutex_);
  return closed_ || finished_;
}

size_t Stream::waiting() const {
  const std::scoped_lock lock(mutex_);
  return waiting_.size();
}

void Stream::OnChange(std::function<void()> wake) {
  const std::scoped_lock lock(mutex_);
  wake_ = std::move(wake);
}

std::pair<std::string, bool> Stream::Take() {
  const std::scoped_lock lock(mutex_);
  return {std::exchange(waiting_, {}), finished_ || closed_};
}

void Stream::OnClose(std::function<void()> closed) {
  const std::scoped_lock lock(mutex_);
  on_close_ = std::move(closed);
}

void Stream::Close() {
  std::function<void()> closed;
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    wake_ = nullptr;
    closed = std::exchange(on_close_, nullptr);
  }
  if (closed) closed();
}

std::string_view ReasonOf(int status) {
  static constexpr std::pair<int, std::string_view> kReasons[] = {
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {304, "Not Modified"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {406, "Not Acceptable"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {411, "Length Required"},
      {413, "Content Too Large"},
      {415, "Unsupported Media Type"},
      {421, "Misdirected Request"},
      {422, "Unprocessable Content"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {503, "Service Unavailable"}};
  for (const auto& [code, reason] : kReasons) {
    if (code == status) return reason;
  }
  return "Unknown";
}

}  // namespace atunner::http
