#include "atunner/llm/endpoint.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "atunner/http/origin.h"

namespace atunner::llm {
namespace {

constexpr const char* kForms =
    "use openai:MODEL, anthropic:MODEL or http://localhost:PORT/v1, with #MODEL where a model must "
    "be named";

std::string WithoutSlash(std::string text) {
  while (text.ends_with('/')) text.pop_back();
  return text;
}

bool IsAt(const Endpoint& endpoint, std::string_view host) {
  return endpoint.url.starts_with("https://" + std::string(host) + "/");
}

/// True for a service on another machine whose connection is not encrypted.
bool IsInTheClear(const Endpoint& endpoint) {
  const auto url = http::ParseServiceUrl(endpoint.url);
  return url && !url->origin.tls && !http::IsLoopbackHost(url->origin.host);
}

/// The key of this endpoint; "" if there is none.
Result<std::string> FindKey(const Endpoint& endpoint, const Environment& environment,
                            const Path& file) {
  if (auto key = environment("ATUNNER_LLM_KEY")) return *key;
  // A key goes to the service that it belongs to and to no other.
  if (IsAt(endpoint, "api.openai.com")) {
    if (auto key = environment("OPENAI_API_KEY")) return *key;
  }
  if (IsAt(endpoint, "api.anthropic.com")) {
    if (auto key = environment("ANTHROPIC_API_KEY")) return *key;
  }
  struct stat about = {};
  if (::stat(file.c_str(), &about) != 0) return std::string();
  if ((about.st_mode & 077) != 0)
    return Invalid("others may read this file with a key", file.string(),
                   "chmod 600 " + file.string());
  ATUNNER_TRY(const std::string text, ReadFile(file, 4096));
  return text.substr(0, text.find_first_of("\r\n \t"));
}

}  // namespace

Result<Endpoint> ParseEndpoint(std::string_view text) {
  Endpoint endpoint;
  if (text.starts_with("openai:") || text.starts_with("anthropic:")) {
    const size_t colon = text.find(':');
    endpoint.model = std::string(text.substr(colon + 1));
    if (endpoint.model.empty()) return Invalid("no model is named", "request.llm", kForms);
    const bool is_anthropic = text.starts_with("anthropic:");
    endpoint.api = is_anthropic ? Endpoint::Api::kAnthropic : Endpoint::Api::kOpenAi;
    endpoint.url = is_anthropic ? "https://api.anthropic.com/v1/messages"
                                : "https://api.openai.com/v1/chat/completions";
    endpoint.name = std::string(text);
    return endpoint;
  }
  if (!text.starts_with("http://") && !text.starts_with("https://"))
    return Invalid("'" + std::string(text) + "' is no language model", "request.llm", kForms);
  const size_t hash = std::min(text.find('#'), text.size());
  const std::string base = WithoutSlash(std::string(text.substr(0, hash)));
  if (hash < text.size()) endpoint.model = std::string(text.substr(hash + 1));
  endpoint.url = base + "/chat/completions";
  ATUNNER_TRY(const http::ServiceUrl url, http::ParseServiceUrl(endpoint.url));
  endpoint.name = url.origin.host + ":" + url.origin.port +
                  (endpoint.model.empty() ? "" : ":" + endpoint.model);
  return endpoint;
}

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return std::string(value);
  };
}

Result<std::string> KeyFor(const Endpoint& endpoint, const Environment& environment,
                           const Path& file) {
  ATUNNER_TRY(std::string key, FindKey(endpoint, environment, file));
  if (!key.empty() && IsInTheClear(endpoint))
    return Invalid("a key is not sent over a connection without encryption", "request.llm",
                   "use https://, or unset the key if the service needs none");
  return key;
}

}  // namespace atunner::llm
