#include "atunner/mcp/transport/exchange.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/mcp/protocol/message.h"

namespace atunner::mcp {
namespace {

/// A call that takes longer is answered by a stream, whose comments keep the connection alive.
constexpr std::chrono::milliseconds kQuick{1000};

std::string EventText(const std::string& message) {
  return "event: message\ndata: " + message + "\n\n";
}

}  // namespace

int StatusOf(const std::string& answer, bool stateless) {
  if (!stateless) return 200;
  const auto json = ParseJson(answer, "answer");
  if (!json || !json->contains("error")) return 200;
  switch (static_cast<RpcCode>((*json)["error"].value("code", 0))) {
    case RpcCode::kMethodNotFound:
      return 404;
    case RpcCode::kInternal:
      return 500;
    default:
      return 400;
  }
}

void Exchange::Send(const std::string& message) {
  const std::scoped_lock lock(mutex_);
  if (stream_)
    stream_->Write(EventText(message));
  else
    messages_.push_back(message);
}

void Exchange::End() {
  const std::scoped_lock lock(mutex_);
  ended_ = true;
  left_ = nullptr;
  if (stream_) stream_->Finish();
}

void Exchange::OnLeave(std::function<void()> left) {
  const std::scoped_lock lock(mutex_);
  left_ = std::move(left);
}

std::optional<http::Response> Exchange::Look() {
  const std::scoped_lock lock(mutex_);
  const bool alone = messages_.size() <= 1 || !events_;
  if (ended_ && alone) return AsJson();
  const bool slow = std::chrono::steady_clock::now() - begin_ > kQuick;
  if (events_ && (ended_ || slow || !messages_.empty())) return OpenStream();
  return std::nullopt;
}

/// The last message, which is the answer; a cancelled call has none.
http::Response Exchange::AsJson() const {
  http::Response response;
  response.status = 202;
  if (messages_.empty()) return response;
  response.status = StatusOf(messages_.back(), stateless_);
  response.headers.Set("Content-Type", "application/json");
  response.headers.Set("Cache-Control", "no-store");
  response.body = messages_.back();
  return response;
}

http::Response Exchange::OpenStream() {
  stream_ = std::make_shared<http::Stream>();
  for (const std::string& message : messages_) stream_->Write(EventText(message));
  messages_.clear();
  if (ended_) stream_->Finish();
  if (left_) stream_->OnClose(std::exchange(left_, nullptr));
  http::Response response;
  response.headers.Set("Content-Type", "text/event-stream");
  response.headers.Set("Cache-Control", "no-store");
  response.stream = stream_;
  response.keep_alive = ": \n\n";
  return response;
}

}  // namespace atunner::mcp
