// Which language model to ask, where, and with which key.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "atunner/base/files.h"
#include "atunner/base/result.h"

namespace atunner::llm {

struct Endpoint {
  enum class Api : uint8_t { kOpenAi, kAnthropic };
  Api api = Api::kOpenAi;
  std::string url;    ///< of the chat itself: "https://api.openai.com/v1/chat/completions"
  std::string model;  ///< "" lets a local server choose
  std::string name;   ///< for provenance: "openai:gpt-5", "localhost:8000"
};

/// "openai:MODEL", "anthropic:MODEL", or the base of an OpenAI-compatible service with an optional
/// model, "http://localhost:8000/v1#MODEL". kInvalidInput for anything else.
Result<Endpoint> ParseEndpoint(std::string_view text);

/// Reads an environment variable; nullopt where it is not set.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
Environment ProcessEnvironment();

/// $ATUNNER_LLM_KEY, else $OPENAI_API_KEY or $ANTHROPIC_API_KEY for those two services, else the
/// first line of `file`. "" if there is none, which local services take. kInvalidInput for a file
/// that others may read, and for a key that would go to another machine without encryption.
Result<std::string> KeyFor(const Endpoint& endpoint, const Environment& environment,
                           const Path& file);

}  // namespace atunner::llm
