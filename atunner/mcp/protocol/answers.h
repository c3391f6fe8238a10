// Results of the protocol from the tables of an offer.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "atunner/mcp/protocol/message.h"
#include "atunner/mcp/protocol/offer.h"

namespace atunner::mcp {

std::unexpected<RpcError> Refuse(RpcCode code, std::string message, Json data = nullptr);

/// Results that a client may keep for a while, in the stateless revision.
bool IsCacheable(std::string_view method);

/// The result of a tool, as structure and as the same in text; an error is one, too.
Json ToolResult(const Result<Json>& result);

Json ToolList(const Offer& offer);
Json PromptList(const Offer& offer);
Json ResourceList(const std::vector<ResourceInfo>& resources);
Json TemplateList(Resources& resources);
Json ContentsOf(const std::string& uri, const ResourceText& resource);

/// The strings among the arguments that a prompt has. kInvalidParams where one is missing.
std::expected<Json, RpcError> PromptArguments(const Prompt& prompt, const Json& given);

/// At most 100 of the values that begin with `typed`, in any case of letters.
Json Completion(const std::vector<std::string>& values, std::string_view typed);

/// True if a client that asked for `wanted` gets lines of `level`.
bool IsLogged(std::string_view level, std::string_view wanted);

}  // namespace atunner::mcp
