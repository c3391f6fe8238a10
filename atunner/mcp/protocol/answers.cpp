#include "atunner/mcp/protocol/answers.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

namespace atunner::mcp {
namespace {

constexpr size_t kMostCompletions = 100;

Json ErrorJson(const Error& error) {
  return {{"error",
           {{"code", Name(error.code)},
            {"what", error.what},
            {"where", error.where},
            {"hint", error.hint}}}};
}

Json ResourceJson(const ResourceInfo& info, const char* uri_key) {
  return {{uri_key, info.uri},
          {"name", info.name},
          {"description", info.description},
          {"mimeType", info.mime_type}};
}

Json ToolJson(const Tool& tool) {
  return {
      {"name", tool.name},
      {"title", tool.title},
      {"description", tool.description},
      {"inputSchema", tool.input_schema},
      {"annotations",
       {{"readOnlyHint", tool.read_only}, {"destructiveHint", false}, {"openWorldHint", false}}}};
}

Json PromptJson(const Prompt& prompt) {
  Json arguments = Json::array();
  for (const PromptArgument& argument : prompt.arguments)
    arguments.push_back({{"name", argument.name},
                         {"description", argument.description},
                         {"required", argument.required}});
  return {{"name", prompt.name},
          {"title", prompt.title},
          {"description", prompt.description},
          {"arguments", std::move(arguments)}};
}

bool BeginsWith(std::string_view text, std::string_view beginning) {
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return text.size() >= beginning.size() &&
         std::ranges::equal(text.substr(0, beginning.size()), beginning, same);
}

}  // namespace

std::unexpected<RpcError> Refuse(RpcCode code, std::string message, Json data) {
  return std::unexpected(RpcError{code, std::move(message), std::move(data), nullptr});
}

bool IsCacheable(std::string_view method) {
  static constexpr std::string_view kMethods[] = {
      "server/discover",          "tools/list",    "prompts/list", "resources/list",
      "resources/templates/list", "resources/read"};
  return std::ranges::find(kMethods, method) != std::end(kMethods);
}

Json ToolResult(const Result<Json>& result) {
  const Json value = result ? *result : ErrorJson(result.error());
  return {{"content", Json::array({{{"type", "text"}, {"text", DumpJson(value)}}})},
          {"structuredContent", value},
          {"isError", !result.has_value()}};
}

Json ToolList(const Offer& offer) {
  Json tools = Json::array();
  for (const Tool& tool : offer.tools) tools.push_back(ToolJson(tool));
  return {{"tools", std::move(tools)}};
}

Json PromptList(const Offer& offer) {
  Json prompts = Json::array();
  for (const Prompt& prompt : offer.prompts) prompts.push_back(PromptJson(prompt));
  return {{"prompts", std::move(prompts)}};
}

Json ResourceList(const std::vector<ResourceInfo>& resources) {
  Json list = Json::array();
  for (const ResourceInfo& info : resources) list.push_back(ResourceJson(info, "uri"));
  return {{"resources", std::move(list)}};
}

Json TemplateList(Resources& resources) {
  Json templates = Json::array();
  for (const ResourceInfo& info : resources.Templates())
    templates.push_back(ResourceJson(info, "uriTemplate"));
  return {{"resourceTemplates", std::move(templates)}};
}

Json ContentsOf(const std::string& uri, const ResourceText& resource) {
  const char* const key = resource.base64 ? "blob" : "text";
  return {{"contents",
           Json::array({{{"uri", uri}, {"mimeType", resource.mime_type}, {key, resource.text}}})}};
}

std::expected<Json, RpcError> PromptArguments(const Prompt& prompt, const Json& given) {
  Json arguments = Json::object();
  for (const PromptArgument& argument : prompt.arguments) {
    const Json value = Member(given, argument.name);
    if (value.is_string()) arguments[argument.name] = value;
    if (argument.required && !value.is_string())
      return Refuse(RpcCode::kInvalidParams, "the argument '" + argument.name + "' is missing");
  }
  return arguments;
}

Json Completion(const std::vector<std::string>& values, std::string_view typed) {
  Json found = Json::array();
  size_t total = 0;
  for (const std::string& value : values) {
    if (!BeginsWith(value, typed)) continue;
    if (++total <= kMostCompletions) found.push_back(value);
  }
  return {
      {"completion",
       {{"values", std::move(found)}, {"total", total}, {"hasMore", total > kMostCompletions}}}};
}

bool IsLogged(std::string_view level, std::string_view wanted) {
  const auto* const least = std::ranges::find(kLogLevels, wanted);
  const auto* const at = std::ranges::find(kLogLevels, level);
  return least != std::end(kLogLevels) && at >= least;
}

}  // namespace atunner::mcp
