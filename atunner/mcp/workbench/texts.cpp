#include "atunner/mcp/workbench/texts.h"

#include <fmt/format.h>

#include <algorithm>

namespace atunner::mcp {
namespace {

constexpr const char* kPrefix = "atunner://text/";

/// The first `limit` bytes, without a cut character of UTF-8.
std::string Beginning(const std::string& text, size_t limit) {
  const auto continues = [&](size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U;
  };
  while (limit > 0 && continues(limit)) --limit;
  return text.substr(0, limit);
}

}  // namespace

Json Texts::Bounded(std::string text, size_t limit) {
  if (text.size() <= limit) return text;
  const std::lock_guard lock(mutex_);
  Json json{{"beginning", Beginning(text, limit)},
            {"bytes", text.size()},
            {"rest", fmt::format("{}{}", kPrefix, next_)}};
  bytes_ += text.size();
  kept_.emplace_back(next_++, std::move(text));
  while (bytes_ > kMostBytes && kept_.size() > 1) {
    bytes_ -= kept_.front().second.size();
    kept_.pop_front();
  }
  return json;
}

Result<std::string> Texts::Read(const std::string& uri) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      kept_, [&](const auto& one) { return uri == fmt::format("{}{}", kPrefix, one.first); });
  if (found == kept_.end())
    return Fail(ErrorCode::kNotFound, "there is no such text, or no longer", uri,
                "call the tool again");
  return found->second;
}

}  // namespace atunner::mcp
