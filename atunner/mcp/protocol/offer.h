// What a server offers to its clients: tools, resources and prompts, as tables.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/json/json.h"

namespace atunner::mcp {

/// Something that the client's user or model is asked: "elicitation/create",
/// "sampling/createMessage" or "roots/list" with its parameters.
struct Question {
  std::string key;  ///< names its answer
  std::string method;
  Json params;
};

/// The circumstances of one call of a tool or a prompt.
struct CallContext {
  std::stop_token stop;  ///< requested when the client cancels the call
  /// Says how far the call is; `total` 0 = unknown. Does nothing if the client did not ask for it.
  std::function<void(double progress, double total, const std::string& message)> progress;
  /// Sends a line of a log at one of kLogLevels. Does nothing if the client did not ask for it.
  std::function<void(std::string_view level, const std::string& text)> log;
  /// Asks the client and returns an object of answers by key. In 2025-11-25 it waits for them. In
  /// 2026-07-28 the questions are the answer to this call, and the client calls again with what
  /// they brought: then the error is kCancelled, and the caller returns at once. kUnsupported where
  /// the client did not declare that it can be asked so.
  std::function<Result<Json>(const std::vector<Question>& questions)> ask;
  Json capabilities = Json::object();  ///< that the client declared
  std::string state;                   ///< what `keep` was given in the call before
  /// Text that comes back, unchanged, when the client answers the questions of this call. Only in
  /// 2026-07-28, where nothing else is remembered.
  std::function<void(std::string text)> keep;
};

/// Levels of a log, the least important first (RFC 5424).
inline constexpr std::string_view kLogLevels[] = {"debug", "info",     "notice", "warning",
                                                  "error", "critical", "alert",  "emergency"};

struct Tool {
  std::string name;
  std::string title;
  std::string description;
  Json input_schema;
  bool read_only = true;  ///< it leaves store and artifacts as they are
  /// The arguments fit the schema. An error is data for the client, not a failure of the protocol.
  std::function<Result<Json>(const Json& arguments, const CallContext& context)> call;
  /// `call` returns a whole result of the protocol ({"content": [...]}), not its structured
  /// content.
  bool whole_result = false;
};

struct ResourceInfo {
  std::string uri;  ///< or a template of one, "atunner://operator/{name}"
  std::string name;
  std::string description;
  std::string mime_type;
};

struct ResourceText {
  std::string mime_type;
  std::string text;
  bool base64 = false;  ///< `text` encodes bytes
};

class Resources {
 public:
  virtual ~Resources() = default;
  virtual Result<std::vector<ResourceInfo>> List() = 0;
  virtual std::vector<ResourceInfo> Templates() = 0;
  /// kNotFound for an unknown URI.
  virtual Result<ResourceText> Read(const std::string& uri) = 0;
};

struct PromptArgument {
  std::string name;
  std::string description;
  bool required = false;
};

struct Prompt {
  std::string name;
  std::string title;
  std::string description;
  std::vector<PromptArgument> arguments;
  /// The text of the one message, from the given arguments (an object of strings).
  std::function<std::string(const Json& arguments)> text;
  /// If there is one, all messages (an array) instead of the one of `text`.
  std::function<Result<Json>(const Json& arguments, const CallContext& context)> messages;
};

struct Offer {
  std::string name;
  std::string version;
  std::string instructions;
  std::vector<Tool> tools;
  Resources* resources = nullptr;
  std::vector<Prompt> prompts;
  /// Every value that an argument of a prompt (`subject`: its name) or of a resource template
  /// (`subject`: its URI) may have; empty: anything.
  std::function<std::vector<std::string>(const std::string& subject, const std::string& argument)>
      values;
  bool subscribe = false;  ///< clients may subscribe to resources
  std::string secret;      ///< signs what clients carry from call to call; random, 32 bytes
};

/// Random bytes of the system, as hexadecimal digits. Empty where the system gives none.
std::string RandomId(size_t bytes);

}  // namespace atunner::mcp
