// A chat over HTTP, with an OpenAI-compatible service or Anthropic's.
#pragma once

#include <functional>
#include <string>

#include "atunner/base/clock.h"
#include "atunner/http/client.h"
#include "atunner/llm/chat.h"
#include "atunner/llm/endpoint.h"

namespace atunner::llm {

struct HttpChatOptions {
  int attempts = 5;              ///< all in all
  double first_seconds = 1;      ///< wait before the second attempt, doubled for each further one
  double most_seconds = 60;      ///< of one wait; a service that asks for longer is not waited for
  double timeout_seconds = 300;  ///< of one attempt, from connecting to the last byte
};

/// Answers 408, 409, 429 and 5xx, broken connections and time-outs are tried again, after the time
/// that the service asks for (Retry-After) or a growing wait. Other errors are not.
class HttpChat : public Chat {
 public:
  using Transport = std::function<Result<http::Response>(const http::Origin&, const http::Request&,
                                                         const http::CallOptions&)>;
  /// `key` is sent to the endpoint and appears nowhere else. `clock` must outlive the object.
  HttpChat(Endpoint endpoint, std::string key, Clock& clock, HttpChatOptions options = {},
           Transport transport = http::Call);

  /// kUnavailable when all attempts failed, kInvalidInput for a refused key or request,
  /// kCancelled.
  Result<ChatReply> Ask(const ChatRequest& request, const std::stop_token& stop) override;

 private:
  http::Request RequestOf(const ChatRequest& request) const;
  Result<ChatReply> ReplyOf(const ChatRequest& request, const std::string& body) const;
  Error Refusal(const http::Response& response) const;
  std::string WithoutKey(std::string text) const;
  Status Wait(double seconds, const std::stop_token& stop) const;

  Endpoint endpoint_;
  std::string key_;
  Clock& clock_;
  HttpChatOptions options_;
  Transport transport_;
};

}  // namespace atunner::llm
