// Chats that are recorded into a file, or replayed from one, so that a run can be repeated without
// the service. A file holds one JSON object a line: {"request": digest, "reply": …}.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "atunner/base/files.h"
#include "atunner/llm/chat.h"

namespace atunner::llm {

/// Appends each exchange to the file. Keys are not part of requests, so none is written.
class RecordingChat : public Chat {
 public:
  RecordingChat(std::unique_ptr<Chat> inner, Path file)
      : inner_(std::move(inner)), file_(std::move(file)) {}
  Result<ChatReply> Ask(const ChatRequest& request, const std::stop_token& stop) override;

 private:
  std::unique_ptr<Chat> inner_;
  Path file_;
};

/// Answers from a file. Equal requests get their replies in the recorded order.
class ReplayChat : public Chat {
 public:
  /// kInvalidInput for a file that is no recording.
  static Result<std::unique_ptr<ReplayChat>> Open(const Path& file);
  /// kNotFound for a request that was not recorded.
  Result<ChatReply> Ask(const ChatRequest& request, const std::stop_token& stop) override;

 private:
  std::map<std::string, std::deque<ChatReply>> replies_;
};

}  // namespace atunner::llm
