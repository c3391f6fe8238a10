// Texts that are too long for an answer: cut there, kept here under a handle.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "atunner/model/json/json.h"

namespace atunner::mcp {

class Texts {
 public:
  /// A text of at most `limit` bytes as it is. A longer one as an object: its beginning, its length
  /// and the URI under which a client reads all of it. Thread-safe.
  Json Bounded(std::string text, size_t limit);
  /// kNotFound for a URI that is no handle, or whose text was dropped for newer ones.
  Result<std::string> Read(const std::string& uri) const;

 private:
  static constexpr size_t kMostBytes = size_t{64} << 20;

  mutable std::mutex mutex_;
  std::deque<std::pair<uint64_t, std::string>> kept_;  ///< number and text, oldest first
  uint64_t next_ = 1;
  size_t bytes_ = 0;
};

}  // namespace atunner::mcp
