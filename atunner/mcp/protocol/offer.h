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

/// The circumstances of one call of a tool.
struct CallContext {
  std::stop_token stop;  ///< requested when the client cancels the call
  /// Says how far the call is; `total` 0 = unknown. Does nothing if the client did not ask for it.
  std::function<void(double progress, double total, const std::string& message)> progress;
};

struct Tool {
  std::string name;
  std::string title;
  std::string description;
  Json input_schema;
  bool read_only = true;  ///< it leaves store and artifacts as they are
  /// The arguments fit the schema. An error is data for the client, not a failure of the protocol.
  std::function<Result<Json>(const Json& arguments, const CallContext& context)> call;
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
};

struct Offer {
  std::string name;
  std::string version;
  std::string instructions;
  std::vector<Tool> tools;
  Resources* resources = nullptr;
  std::vector<Prompt> prompts;
};

}  // namespace atunner::mcp
