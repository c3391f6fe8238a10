#include "atunner/mcp/protocol/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "atunner/mcp/protocol/schema.h"

namespace atunner::mcp {

/// A request with the revision in which it is to be answered.
struct Session::Request {
  Json id;
  std::string method;
  Json params;
  bool stateless = false;
};

namespace {

constexpr std::string_view kVersionKey = "io.modelcontextprotocol/protocolVersion";
constexpr std::string_view kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
constexpr std::string_view kServerInfoKey = "io.modelcontextprotocol/serverInfo";

std::unexpected<RpcError> Refuse(RpcCode code, std::string message, Json data = nullptr) {
  return std::unexpected(RpcError{code, std::move(message), std::move(data), nullptr});
}

/// A member of an object that has the wanted type; null else.
Json Member(const Json& object, std::string_view name) {
  const auto found = object.find(name);
  return found == object.end() ? Json() : *found;
}

std::string TextMember(const Json& object, std::string_view name) {
  const Json value = Member(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

/// Results that a client may keep for a while, in the stateless revision.
bool IsCacheable(std::string_view method) {
  static constexpr std::string_view kMethods[] = {
      "server/discover",          "tools/list",    "prompts/list", "resources/list",
      "resources/templates/list", "resources/read"};
  return std::ranges::find(kMethods, method) != std::end(kMethods);
}

Json ErrorJson(const Error& error) {
  return {{"error",
           {{"code", Name(error.code)},
            {"what", error.what},
            {"where", error.where},
            {"hint", error.hint}}}};
}

/// The result of a tool, as structure and as the same in text.
Json ToolResult(const Result<Json>& result) {
  const Json value = result ? *result : ErrorJson(result.error());
  return {{"content", Json::array({{{"type", "text"}, {"text", DumpJson(value)}}})},
          {"structuredContent", value},
          {"isError", !result.has_value()}};
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

}  // namespace

Session::Work Session::Accept(std::string_view text) {
  const auto message = ParseMessage(text);
  if (!message) {
    send_(ErrorText(message.error()));
    return {};
  }
  if (message->answer) return {};
  if (!message->id) {
    Notified(*message);
    return {};
  }
  return Dispatch(*message);
}

Session::Work Session::Dispatch(const Message& message) {
  Request request{*message.id, message.method, message.params, false};
  const auto stateless = ReadRevision(request);
  if (!stateless) {
    Finish(request, std::unexpected(stateless.error()));
    return {};
  }
  request.stateless = *stateless;
  if (request.method == "tools/call") return BeginCall(request);
  Finish(request, AnswerOf(request));
  return {};
}

/// True for the stateless revision. A request without a revision belongs to a session that must
/// have begun.
std::expected<bool, RpcError> Session::ReadRevision(Request& request) const {
  const Json meta = Member(request.params, "_meta");
  const Json version = meta.is_object() ? Member(meta, kVersionKey) : Json();
  if (!version.is_null()) {
    if (version != kStateless)
      return Refuse(RpcCode::kUnsupportedVersion, "this revision is not served in `_meta`",
                    {{"requested", version}, {"supported", Json::array({kStateless})}});
    if (!Member(meta, kCapabilitiesKey).is_object())
      return Refuse(RpcCode::kInvalidParams,
                    fmt::format("'_meta.{}' must be an object", kCapabilitiesKey));
    return true;
  }
  const bool first = request.method == "initialize" || request.method == "ping";
  if (first || (initialized_ && request.method != "server/discover")) return false;
  return Refuse(RpcCode::kInvalidParams,
                fmt::format("send `initialize` first ({}), or '_meta.{}' in each request ({})",
                            kStateful, kVersionKey, kStateless));
}

void Session::Finish(const Request& request, Answer answer) const {
  if (!answer) {
    answer.error().id = request.id;
    send_(ErrorText(answer.error()));
    return;
  }
  if (request.stateless) {
    Json& result = *answer;
    result["resultType"] = "complete";
    result["_meta"][std::string(kServerInfoKey)] = ServerInfo();
    if (IsCacheable(request.method)) {
      result["ttlMs"] = 0;
      result["cacheScope"] = "private";
    }
  }
  send_(ResultText(request.id, *answer));
}

void Session::Notified(const Message& message) {
  if (message.method != "notifications/cancelled") return;
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(DumpJson(Member(message.params, "requestId")));
  if (found != running_.end()) found->second.request_stop();
}

void Session::CancelAll() {
  const std::lock_guard lock(mutex_);
  for (auto& [id, stop] : running_) stop.request_stop();
}

Session::Work Session::BeginCall(const Request& request) {
  const std::string id = DumpJson(request.id);
  std::stop_source stop;
  {
    const std::lock_guard lock(mutex_);
    if (!running_.emplace(id, stop).second) {
      Finish(request, Refuse(RpcCode::kInvalidRequest, "a request with this id is running"));
      return {};
    }
  }
  return [this, request, id, stop] {
    Answer answer = Call(request, stop.get_token());
    {
      const std::lock_guard lock(mutex_);
      running_.erase(id);
    }
    // A client that cancelled expects no answer.
    if (!stop.stop_requested()) Finish(request, std::move(answer));
  };
}

Session::Answer Session::AnswerOf(const Request& request) {
  const std::string& method = request.method;
  if (method == "server/discover") return Discover();
  if (!request.stateless && method == "initialize") return Initialize(request.params);
  if (!request.stateless && method == "ping") return Json::object();
  if (method == "tools/list") return Tools();
  if (method == "prompts/list") return Prompts();
  if (method == "prompts/get") return GetPrompt(request.params);
  if (method == "resources/list") return ListResources();
  if (method == "resources/templates/list") return ResourceTemplates();
  if (method == "resources/read") return ReadResource(request);
  return Refuse(RpcCode::kMethodNotFound, "there is no method '" + method + "'");
}

Session::Answer Session::Initialize(const Json& params) {
  if (!Member(params, "protocolVersion").is_string())
    return Refuse(RpcCode::kInvalidParams, "'protocolVersion' is missing");
  initialized_ = true;
  return Json{{"protocolVersion", kStateful},
              {"capabilities", Capabilities()},
              {"serverInfo", ServerInfo()},
              {"instructions", offer_.instructions}};
}

Json Session::Discover() const {
  return {{"supportedVersions", Json::array({kStateless})},
          {"capabilities", Capabilities()},
          {"instructions", offer_.instructions}};
}

Json Session::Capabilities() const {
  return {{"tools", Json::object()}, {"resources", Json::object()}, {"prompts", Json::object()}};
}

Json Session::ServerInfo() const { return {{"name", offer_.name}, {"version", offer_.version}}; }

Json Session::Tools() const {
  Json tools = Json::array();
  for (const Tool& tool : offer_.tools) tools.push_back(ToolJson(tool));
  return {{"tools", std::move(tools)}};
}

CallContext Session::ContextOf(const Request& request, const std::stop_token& stop) const {
  const Json meta = Member(request.params, "_meta");
  const Json token = meta.is_object() ? Member(meta, "progressToken") : Json();
  if (!token.is_string() && !token.is_number_integer())
    return {stop, [](double, double, const std::string&) {}};
  return {stop, [this, token](double progress, double total, const std::string& message) {
            Json params{{"progressToken", token}, {"progress", progress}};
            if (total > 0) params["total"] = total;
            if (!message.empty()) params["message"] = message;
            send_(NotificationText("notifications/progress", params));
          }};
}

Session::Answer Session::Call(const Request& request, const std::stop_token& stop) const {
  const std::string name = TextMember(request.params, "name");
  const auto tool = std::ranges::find(offer_.tools, name, &Tool::name);
  if (tool == offer_.tools.end())
    return Refuse(RpcCode::kInvalidParams, "there is no tool '" + name + "'");
  Json arguments = Member(request.params, "arguments");
  if (arguments.is_null()) arguments = Json::object();
  if (const Status fits = CheckSchema(tool->input_schema, arguments); !fits)
    return ToolResult(std::unexpected(fits.error()));
  return ToolResult(tool->call(arguments, ContextOf(request, stop)));
}

Session::Answer Session::ListResources() const {
  const auto listed = offer_.resources->List();
  if (!listed) return Refuse(RpcCode::kInternal, listed.error().ToString());
  Json resources = Json::array();
  for (const ResourceInfo& info : *listed) resources.push_back(ResourceJson(info, "uri"));
  return Json{{"resources", std::move(resources)}};
}

Json Session::ResourceTemplates() const {
  Json templates = Json::array();
  for (const ResourceInfo& info : offer_.resources->Templates())
    templates.push_back(ResourceJson(info, "uriTemplate"));
  return {{"resourceTemplates", std::move(templates)}};
}

Session::Answer Session::ReadResource(const Request& request) const {
  const std::string uri = TextMember(request.params, "uri");
  const auto found = offer_.resources->Read(uri);
  if (!found)
    return Refuse(request.stateless ? RpcCode::kInvalidParams : RpcCode::kResourceNotFound,
                  found.error().ToString(), {{"uri", uri}});
  return Json{
      {"contents",
       Json::array({{{"uri", uri}, {"mimeType", found->mime_type}, {"text", found->text}}})}};
}

Json Session::Prompts() const {
  Json prompts = Json::array();
  for (const Prompt& prompt : offer_.prompts) {
    Json arguments = Json::array();
    for (const PromptArgument& argument : prompt.arguments)
      arguments.push_back({{"name", argument.name},
                           {"description", argument.description},
                           {"required", argument.required}});
    prompts.push_back({{"name", prompt.name},
                       {"title", prompt.title},
                       {"description", prompt.description},
                       {"arguments", std::move(arguments)}});
  }
  return {{"prompts", std::move(prompts)}};
}

Session::Answer Session::GetPrompt(const Json& params) const {
  const std::string name = TextMember(params, "name");
  const auto prompt = std::ranges::find(offer_.prompts, name, &Prompt::name);
  if (prompt == offer_.prompts.end())
    return Refuse(RpcCode::kInvalidParams, "there is no prompt '" + name + "'");
  Json arguments = Json::object();
  for (const PromptArgument& argument : prompt->arguments) {
    const Json given = Member(params, "arguments");
    const Json value = given.is_object() ? Member(given, argument.name) : Json();
    if (value.is_string()) arguments[argument.name] = value;
    if (argument.required && !value.is_string())
      return Refuse(RpcCode::kInvalidParams, "the argument '" + argument.name + "' is missing");
  }
  return Json{
      {"description", prompt->description},
      {"messages",
       Json::array({{{"role", "user"},
                     {"content", {{"type", "text"}, {"text", prompt->text(arguments)}}}}})}};
}

}  // namespace atunner::mcp
