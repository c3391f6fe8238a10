// The answer to one message that came by POST: JSON, or server-sent events where more than the
// answer is to be said, or where it takes long.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "atunner/http/message.h"

namespace atunner::mcp {

/// Status of HTTP for an answer: errors of the protocol have their own in 2026-07-28, and 200 in
/// 2025-11-25.
int StatusOf(const std::string& answer, bool stateless);

/// Thread-safe.
class Exchange {
 public:
  /// `events`: the client accepts a stream of them.
  Exchange(bool events, bool stateless) : events_(events), stateless_(stateless) {}

  void Send(const std::string& message);
  /// Nothing more is sent.
  void End();
  /// `left` is called if the client goes away while a stream is open.
  void OnLeave(std::function<void()> left);
  /// The answer, once it is known which form it takes.
  std::optional<http::Response> Look();

 private:
  http::Response AsJson() const;
  http::Response OpenStream();

  const bool events_;
  const bool stateless_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::vector<std::string> messages_;
  std::shared_ptr<http::Stream> stream_;
  std::function<void()> left_;
  bool ended_ = false;
};

}  // namespace atunner::mcp
