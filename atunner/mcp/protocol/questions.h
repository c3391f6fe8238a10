// What a call asks its client: over a session that waits for answers, or by an answer that asks.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "atunner/mcp/protocol/message.h"
#include "atunner/mcp/protocol/offer.h"

namespace atunner::mcp {

/// The capability that a client needs for a method: "sampling" for "sampling/createMessage".
std::string CapabilityOf(const std::string& method);

/// Questions of a session (2025-11-25) that wait for the client's answers. Thread-safe.
class OpenQuestions {
 public:
  /// A new id for a question.
  std::string Open();
  /// An answer came; ids that were not asked are ignored.
  void Answered(const Json& id, Json result);
  /// Waits for the answer. kCancelled when `stop` is requested, kUnavailable where the client
  /// answers with an error, kTimeout after ten minutes.
  Result<Json> Wait(const std::string& id, const std::stop_token& stop);

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, std::optional<Json>> open_;  ///< null: an error
  int next_ = 1;
};

/// The questions of one call in 2026-07-28.
struct CallRound {
  Json answers = Json::object();  ///< that the client brought
  std::vector<Question> asked;    ///< that the client is to answer next
  std::string kept;
  std::optional<RpcError> refused;  ///< a capability that the client lacks

  /// The answers to `questions` if all are there; else they are asked (CallContext::ask).
  Result<Json> Ask(const std::vector<Question>& questions, const Json& capabilities);
  /// The result that asks.
  Json InputRequired(const std::string& secret, const std::string& purpose) const;
};

}  // namespace atunner::mcp
