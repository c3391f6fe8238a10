// A chat with a language model, whatever the service.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/json/json.h"

namespace atunner::llm {

struct Message {
  enum class Role : uint8_t { kUser, kAssistant };
  Role role = Role::kUser;
  std::string text;
};

struct ChatRequest {
  std::string system;  ///< instructions of the program
  std::vector<Message> messages;
  int64_t most_tokens = 8000;  ///< of the answer
};

struct ChatReply {
  std::string text;
  int64_t input_tokens = 0;  ///< as the service counts them, else estimated
  int64_t output_tokens = 0;
};

class Chat {
 public:
  virtual ~Chat() = default;
  virtual Result<ChatReply> Ask(const ChatRequest& request, const std::stop_token& stop) = 0;
};

Json ToJson(const ChatRequest& request);

}  // namespace atunner::llm
