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
#include <set>
#include <stop_token>
#include <string>
#include <string_view>

#include "atunner/mcp/protocol/message.h"
#include "atunner/mcp/protocol/offer.h"
#include "atunner/mcp/protocol/questions.h"

namespace atunner::mcp {

/// Revisions that are served, newest first.
inline constexpr std::string_view kStateless = "2026-07-28";
inline constexpr std::string_view kStateful = "2025-11-25";

/// Keys of `params._meta` in 2026-07-28.
inline constexpr std::string_view kVersionKey = "io.modelcontextprotocol/protocolVersion";
inline constexpr std::string_view kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";

class Session {
 public:
  /// Takes a message of the server, without a line feed. Called from any thread.
  using Send = std::function<void(const std::string&)>;
  /// A call that is to be run, on any thread; empty when the message is dealt with.
  using Work = std::function<void()>;

  /// `offer` must outlive the session.
  explicit Session(const Offer& offer) : offer_(offer) {}

  /// Answers a message by `send`. A call may take long: it is returned as work, and can be
  /// cancelled, and its questions answered, by messages that are accepted meanwhile. Messages are
  /// accepted one after the other.
  Work Accept(std::string_view text, const Send& send);
  /// Cancels every call that is running.
  void CancelAll();
  /// The resource changed: a client that subscribed to it is told by `send`.
  void Updated(const std::string& uri, const Send& send);

 private:
  struct Request;
  using Answer = std::expected<Json, RpcError>;

  std::expected<bool, RpcError> ReadRevision(const Message& message) const;
  Work Dispatch(const Message& message, const Send& send);
  Work BeginCall(const Request& request);
  Answer Run(const Request& request, const std::stop_token& stop);
  std::expected<CallRound, RpcError> BeginRound(const Request& request) const;
  void Finish(const Request& request, Answer answer) const;
  void Notified(const Message& message);
  Answer AnswerOf(const Request& request);
  Answer AnswerInSession(const Request& request);
  Answer Initialize(const Json& params);
  Answer SetLevel(const Json& params);
  Answer Subscribe(const Json& params, bool begins);
  Json Discover() const;
  Json Capabilities(bool stateless) const;
  Json ServerInfo() const;
  Answer CallTool(const Request& request, const CallContext& context) const;
  Answer GetPrompt(const Request& request, const CallContext& context) const;
  Answer ListResources() const;
  Answer ReadResource(const Request& request) const;
  Answer Complete(const Json& params) const;
  CallContext ContextOf(const Request& request, const std::stop_token& stop, CallRound& round);
  Result<Json> AskInSession(const Request& request, const std::vector<Question>& questions,
                            const std::stop_token& stop);

  const Offer& offer_;
  bool initialized_ = false;
  Json client_capabilities_ = Json::object();
  OpenQuestions questions_;
  std::mutex mutex_;  ///< of what follows
  std::map<std::string, std::stop_source> running_;
  std::string log_level_;  ///< "": no log
  std::set<std::string> subscribed_;
};

}  // namespace atunner::mcp
