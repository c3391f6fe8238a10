// The protocol: one message in, messages out. Transports (standard input and output, HTTP) carry
// lines both ways and know nothing of their contents.
//
// Two revisions are served. In 2025-11-25 a client sends `initialize` first and the session keeps
// the agreed revision. In 2026-07-28 every request carries its revision and the client's
// capabilities in `params._meta`; nothing is remembered between requests.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <string_view>

#include "atunner/mcp/protocol/message.h"
#include "atunner/mcp/protocol/offer.h"

namespace atunner::mcp {

/// Revisions that are served, newest first.
inline constexpr std::string_view kStateless = "2026-07-28";
inline constexpr std::string_view kStateful = "2025-11-25";

class Session {
 public:
  /// Takes one message of the server, without a line feed. Called from any thread.
  using Send = std::function<void(const std::string&)>;
  /// A tool call that is to be run, on any thread; empty when the message is dealt with.
  using Work = std::function<void()>;

  /// `offer` must outlive the session.
  Session(const Offer& offer, Send send) : offer_(offer), send_(std::move(send)) {}

  /// Answers a message. A tool call may take long: it is returned as work, and can be cancelled by
  /// messages that are accepted meanwhile. Messages are accepted one after the other.
  Work Accept(std::string_view text);
  /// Cancels every call that is running.
  void CancelAll();

 private:
  struct Request;
  using Answer = std::expected<Json, RpcError>;

  std::expected<bool, RpcError> ReadRevision(Request& request) const;
  Work Dispatch(const Message& message);
  Work BeginCall(const Request& request);
  void Finish(const Request& request, Answer answer) const;
  void Notified(const Message& message);
  Answer AnswerOf(const Request& request);
  Answer Initialize(const Json& params);
  Json Discover() const;
  Json Capabilities() const;
  Json ServerInfo() const;
  Json Tools() const;
  Answer Call(const Request& request, const std::stop_token& stop) const;
  Answer ListResources() const;
  Answer ReadResource(const Request& request) const;
  Json ResourceTemplates() const;
  Json Prompts() const;
  Answer GetPrompt(const Json& params) const;
  CallContext ContextOf(const Request& request, const std::stop_token& stop) const;

  const Offer& offer_;
  Send send_;
  bool initialized_ = false;
  std::mutex mutex_;  ///< of `running_`
  std::map<std::string, std::stop_source> running_;
};

}  // namespace atunner::mcp
