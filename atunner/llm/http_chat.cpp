#include "atunner/llm/http_chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace atunner::llm {
namespace {

constexpr double kBytesPerToken = 4;  // where a service does not count
constexpr double kPollSeconds = 0.1;
constexpr uint64_t kMostBytes = uint64_t{16} << 20;  // of an answer

Json MessagesOf(const ChatRequest& request) {
  Json messages = Json::array();
  for (const Message& message : request.messages)
    messages.push_back({{"role", message.role == Message::Role::kUser ? "user" : "assistant"},
                        {"content", message.text}});
  return messages;
}

bool IsWorthRetrying(int status) {
  return status == 408 || status == 409 || status == 429 || status >= 500;
}

/// The text of OpenAI's answer.
std::optional<std::string> OpenAiText(const Json& json) {
  const auto choices = json.find("choices");
  if (choices == json.end() || !choices->is_array() || choices->empty()) return std::nullopt;
  const Json& choice = choices->front();
  if (!choice.is_object() || !choice.contains("message") || !choice["message"].is_object())
    return std::nullopt;
  const auto content = choice["message"].find("content");
  if (content == choice["message"].end() || !content->is_string()) return std::nullopt;
  return content->get<std::string>();
}

/// The text of Anthropic's answer: all blocks of text.
std::optional<std::string> AnthropicText(const Json& json) {
  const auto content = json.find("content");
  if (content == json.end() || !content->is_array()) return std::nullopt;
  std::string text;
  for (const Json& block : *content) {
    if (block.is_object() && block.value("type", "") == "text" && block.contains("text") &&
        block["text"].is_string())
      text += block["text"].get<std::string>();
  }
  return text;
}

int64_t Count(const Json& json, const char* name, size_t bytes) {
  const auto usage = json.find("usage");
  if (usage != json.end() && usage->is_object()) {
    const auto count = usage->find(name);
    if (count != usage->end() && count->is_number_integer() && count->get<int64_t>() >= 0)
      return count->get<int64_t>();
  }
  return static_cast<int64_t>(static_cast<double>(bytes) / kBytesPerToken) + 1;
}

size_t BytesOf(const ChatRequest& request) {
  size_t bytes = request.system.size();
  for (const Message& message : request.messages) bytes += message.text.size();
  return bytes;
}

/// Seconds of a Retry-After header; nullopt for a date or nonsense.
std::optional<double> RetryAfter(const http::Response& response) {
  const std::string text = response.headers.Get("Retry-After");
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(seconds >= 0)) return std::nullopt;
  return seconds;
}

}  // namespace

Json ToJson(const ChatRequest& request) {
  return {{"system", request.system},
          {"messages", MessagesOf(request)},
          {"most_tokens", request.most_tokens}};
}

HttpChat::HttpChat(Endpoint endpoint, std::string key, Clock& clock, HttpChatOptions options,
                   Transport transport)
    : endpoint_(std::move(endpoint)),
      key_(std::move(key)),
      clock_(clock),
      options_(options),
      transport_(std::move(transport)) {}

http::Request HttpChat::RequestOf(const ChatRequest& request) const {
  http::Request message;
  message.method = "POST";
  message.headers = {{"Content-Type", "application/json"}, {"Accept", "application/json"}};
  Json body = Json::object();
  if (!endpoint_.model.empty()) body["model"] = endpoint_.model;
  Json messages = MessagesOf(request);
  if (endpoint_.api == Endpoint::Api::kAnthropic) {
    if (!key_.empty()) message.headers.Set("x-api-key", key_);
    message.headers.Set("anthropic-version", "2023-06-01");
    body["max_tokens"] = request.most_tokens;
    body["system"] = request.system;
  } else {
    if (!key_.empty()) message.headers.Set("Authorization", "Bearer " + key_);
    const bool is_openai = endpoint_.url.starts_with("https://api.openai.com/");
    body[is_openai ? "max_completion_tokens" : "max_tokens"] = request.most_tokens;
    body["response_format"] = {{"type", "json_object"}};
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", request.system}});
  }
  body["messages"] = std::move(messages);
  message.body = DumpJson(body);
  return message;
}

std::string HttpChat::WithoutKey(std::string text) const {
  if (key_.empty()) return text;
  for (size_t at = text.find(key_); at != std::string::npos; at = text.find(key_, at))
    text.replace(at, key_.size(), "(key)");
  return text;
}

Error HttpChat::Refusal(const http::Response& response) const {
  const bool is_users = response.status >= 400 && response.status < 500 && response.status != 429;
  std::string said = WithoutKey(response.body.substr(0, 300));
  std::ranges::replace_if(said, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  Error error;
  error.code = is_users ? ErrorCode::kInvalidInput : ErrorCode::kUnavailable;
  error.what = fmt::format("the language model's service answers {}: {}", response.status, said);
  error.where = endpoint_.name;
  if (response.status == 401 || response.status == 403)
    error.hint = "set ATUNNER_LLM_KEY, OPENAI_API_KEY or ANTHROPIC_API_KEY";
  return error;
}

Result<ChatReply> HttpChat::ReplyOf(const ChatRequest& request, const std::string& body) const {
  ATUNNER_TRY(const Json json, ParseJson(body, endpoint_.name));
  if (!json.is_object()) return Invalid("the answer is no JSON object", endpoint_.name);
  const bool is_anthropic = endpoint_.api == Endpoint::Api::kAnthropic;
  auto text = is_anthropic ? AnthropicText(json) : OpenAiText(json);
  if (!text) return Invalid("the answer holds no text", endpoint_.name);
  ChatReply reply;
  reply.input_tokens = Count(json, is_anthropic ? "input_tokens" : "prompt_tokens",
                             BytesOf(request));
  reply.output_tokens = Count(json, is_anthropic ? "output_tokens" : "completion_tokens",
                              text->size());
  reply.text = *std::move(text);
  return reply;
}

Status HttpChat::Wait(double seconds, const std::stop_token& stop) const {
  const double until = clock_.Now() + seconds;
  while (clock_.Now() < until) {
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped by the user");
    clock_.Sleep(std::min(kPollSeconds, until - clock_.Now()));
  }
  return {};
}

Result<ChatReply> HttpChat::Ask(const ChatRequest& request, const std::stop_token& stop) {
  http::Request message = RequestOf(request);
  ATUNNER_TRY(http::ServiceUrl url, http::ParseServiceUrl(endpoint_.url));
  message.target = std::move(url.target);
  http::CallOptions call;
  call.seconds = options_.timeout_seconds;
  call.max_bytes = kMostBytes;
  call.stop = stop;
  Error last;
  for (int attempt = 1; attempt <= options_.attempts; ++attempt) {
    double wait = options_.first_seconds * static_cast<double>(1 << std::min(attempt - 1, 20));
    auto response = transport_(url.origin, message, call);
    if (!response) {
      if (response.error().code == ErrorCode::kCancelled ||
          response.error().code == ErrorCode::kInvalidInput)
        return std::unexpected(response.error());
      last = response.error();
    } else if (response->status == 200) {
      auto reply = ReplyOf(request, response->body);
      if (reply) return reply;
      last = reply.error();  // broken JSON: another attempt may be better
    } else {
      last = Refusal(*response);
      if (!IsWorthRetrying(response->status)) return std::unexpected(last);
      const double asked = RetryAfter(*response).value_or(wait);
      if (asked > options_.most_seconds) return std::unexpected(last);
      wait = asked;
    }
    if (attempt < options_.attempts)
      ATUNNER_RETURN_IF_ERROR(Wait(std::min(wait, options_.most_seconds), stop));
  }
  last.code = ErrorCode::kUnavailable;
  last.hint = fmt::format("{} attempts failed", options_.attempts);
  return std::unexpected(last);
}

}  // namespace atunner::llm
