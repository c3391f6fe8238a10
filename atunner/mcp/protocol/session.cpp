#include "atunner/mcp/protocol/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "atunner/mcp/protocol/answers.h"
#include "atunner/mcp/protocol/schema.h"
#include "atunner/mcp/protocol/sealed_state.h"

namespace atunner::mcp {

/// A request with the revision in which it is to be answered, and where to.
struct Session::Request {
  Json id;
  std::string method;
  Json params;
  Send send;
  bool stateless = false;

  Json Meta(std::string_view key) const { return Member(Member(params, "_meta"), key); }
};

namespace {

constexpr std::string_view kServerInfoKey = "io.modelcontextprotocol/serverInfo";
constexpr std::string_view kLogLevelKey = "io.modelcontextprotocol/logLevel";

/// Calls run code of the offer, which may take long and may ask the client.
bool IsCall(std::string_view method) { return method == "tools/call" || method == "prompts/get"; }

}  // namespace

Session::Work Session::Accept(std::string_view text, const Send& send) {
  const auto message = ParseMessage(text);
  if (!message) {
    send(ErrorText(message.error()));
    return {};
  }
  if (message->answer) {
    if (message->id) questions_.Answered(*message->id, message->result);
    return {};
  }
  if (!message->id) {
    Notified(*message);
    return {};
  }
  return Dispatch(*message, send);
}

Session::Work Session::Dispatch(const Message& message, const Send& send) {
  Request request{*message.id, message.method, message.params, send, false};
  const auto stateless = ReadRevision(message);
  if (!stateless) {
    Finish(request, std::unexpected(stateless.error()));
    return {};
  }
  request.stateless = *stateless;
  if (IsCall(request.method)) return BeginCall(request);
  Finish(request, AnswerOf(request));
  return {};
}

/// True for the stateless revision. A request without a revision belongs to a session that must
/// have begun.
std::expected<bool, RpcError> Session::ReadRevision(const Message& message) const {
  const Json meta = Member(message.params, "_meta");
  const Json version = Member(meta, kVersionKey);
  if (!version.is_null()) {
    if (version != kStateless)
      return Refuse(RpcCode::kUnsupportedVersion, "this revision is not served in `_meta`",
                    {{"requested", version}, {"supported", Json::array({kStateless})}});
    if (!Member(meta, kCapabilitiesKey).is_object())
      return Refuse(RpcCode::kInvalidParams,
                    fmt::format("'_meta.{}' must be an object", kCapabilitiesKey));
    return true;
  }
  const bool first = message.method == "initialize" || message.method == "ping";
  if (first || (initialized_ && message.method != "server/discover")) return false;
  return Refuse(RpcCode::kInvalidParams,
                fmt::format("send `initialize` first ({}), or '_meta.{}' in each request ({})",
                            kStateful, kVersionKey, kStateless));
}

void Session::Finish(const Request& request, Answer answer) const {
  if (!answer) {
    answer.error().id = request.id;
    request.send(ErrorText(answer.error()));
    return;
  }
  if (request.stateless) {
    Json& result = *answer;
    if (!result.contains("resultType")) result["resultType"] = "complete";
    result["_meta"][std::string(kServerInfoKey)] = ServerInfo();
    if (IsCacheable(request.method)) {
      result["ttlMs"] = 0;
      result["cacheScope"] = "private";
    }
  }
  request.send(ResultText(request.id, *answer));
}

void Session::Notified(const Message& message) {
  if (message.method != "notifications/cancelled") return;
  const std::scoped_lock lock(mutex_);
  const auto found = running_.find(DumpJson(Member(message.params, "requestId")));
  if (found != running_.end()) found->second.request_stop();
}

void Session::CancelAll() {
  const std::scoped_lock lock(mutex_);
  for (auto& [id, stop] : running_) stop.request_stop();
}

void Session::Updated(const std::string& uri, const Send& send) {
  {
    const std::scoped_lock lock(mutex_);
    if (!subscribed_.contains(uri)) return;
  }
  send(NotificationText("notifications/resources/updated", {{"uri", uri}}));
}

Session::Work Session::BeginCall(const Request& request) {
  const std::string id = DumpJson(request.id);
  std::stop_source stop;
  bool begun = false;
  {
    const std::scoped_lock lock(mutex_);
    begun = running_.emplace(id, stop).second;
  }
  if (!begun) {
    Finish(request, Refuse(RpcCode::kInvalidRequest, "a request with this id is running"));
    return {};
  }
  // The id is free again when the call ends, or when it is dropped without being run.
  std::shared_ptr<void> running(nullptr, [this, id](void*) {
    const std::scoped_lock lock(mutex_);
    running_.erase(id);
  });
  return [this, request, stop, running = std::move(running)]() mutable {
    Answer answer = Run(request, stop.get_token());
    running.reset();
    // A client that cancelled expects no answer.
    if (!stop.stop_requested()) Finish(request, std::move(answer));
  };
}

/// The answers and the text that a client brings from an earlier round of the same call.
std::expected<CallRound, RpcError> Session::BeginRound(const Request& request) const {
  CallRound round;
  if (!request.stateless) return round;
  if (request.params.contains("inputResponses")) {
    round.answers = request.params["inputResponses"];
    const bool objects = round.answers.is_object() &&
                         std::ranges::all_of(round.answers,
                                             [](const Json& one) { return one.is_object(); });
    if (!objects)
      return Refuse(RpcCode::kInvalidParams, "'inputResponses' must be an object of objects");
  }
  if (!request.params.contains("requestState")) return round;
  auto state = Unseal(offer_.secret, TextMember(request.params, "name"),
                      TextMember(request.params, "requestState"));
  if (!state) return Refuse(RpcCode::kInvalidParams, "'requestState' is not what was sent");
  round.kept = *std::move(state);
  return round;
}

Session::Answer Session::Run(const Request& request, const std::stop_token& stop) {
  auto round = BeginRound(request);
  if (!round) return std::unexpected(round.error());
  const CallContext context = ContextOf(request, stop, *round);
  round->kept.clear();
  Answer answer = request.method == "tools/call" ? CallTool(request, context)
                                                 : GetPrompt(request, context);
  if (round->refused) return std::unexpected(*round->refused);
  if (round->asked.empty()) return answer;
  return round->InputRequired(offer_.secret, TextMember(request.params, "name"));
}

CallContext Session::ContextOf(const Request& request, const std::stop_token& stop,
                               CallRound& round) {
  CallContext context;
  context.stop = stop;
  context.state = round.kept;
  context.capabilities = request.stateless ? request.Meta(kCapabilitiesKey) : client_capabilities_;
  context.keep = [&round](std::string text) { round.kept = std::move(text); };
  const Json token = request.Meta("progressToken");
  const bool wanted = token.is_string() || token.is_number_integer();
  context.progress = [send = request.send, token, wanted](double progress, double total,
                                                          const std::string& message) {
    if (!wanted) return;
    Json params{{"progressToken", token}, {"progress", progress}};
    if (total > 0) params["total"] = total;
    if (!message.empty()) params["message"] = message;
    send(NotificationText("notifications/progress", params));
  };
  const Json stated = request.Meta(kLogLevelKey);
  std::string level = stated.is_string() ? stated.get<std::string>() : "";
  if (!request.stateless) {
    const std::scoped_lock lock(mutex_);
    level = log_level_;
  }
  context.log = [send = request.send, level](std::string_view at, const std::string& text) {
    if (IsLogged(at, level))
      send(NotificationText("notifications/message",
                            {{"level", at}, {"logger", "atunner"}, {"data", text}}));
  };
  context.ask = [this, &request, stop, &round](const std::vector<Question>& questions) {
    return request.stateless ? round.Ask(questions, request.Meta(kCapabilitiesKey))
                             : AskInSession(request, questions, stop);
  };
  return context;
}

Result<Json> Session::AskInSession(const Request& request, const std::vector<Question>& questions,
                                   const std::stop_token& stop) {
  Json answers = Json::object();
  for (const Question& question : questions) {
    const std::string capability = CapabilityOf(question.method);
    if (!client_capabilities_.contains(capability))
      return Fail(ErrorCode::kUnsupported, "the client has no capability '" + capability + "'");
    const std::string id = questions_.Open();
    request.send(QuestionText(id, question.method, question.params));
    ATUNNER_TRY(answers[question.key], questions_.Wait(id, stop));
  }
  return answers;
}

Session::Answer Session::AnswerOf(const Request& request) {
  const std::string& method = request.method;
  if (method == "tools/list") return ToolList(offer_);
  if (method == "prompts/list") return PromptList(offer_);
  if (method == "resources/list") return ListResources();
  if (method == "resources/templates/list") return TemplateList(*offer_.resources);
  if (method == "resources/read") return ReadResource(request);
  if (method == "completion/complete") return Complete(request.params);
  if (method == "server/discover") return Discover();
  if (!request.stateless) return AnswerInSession(request);
  return Refuse(RpcCode::kMethodNotFound, "there is no method '" + method + "'");
}

/// Methods of 2025-11-25 alone.
Session::Answer Session::AnswerInSession(const Request& request) {
  const std::string& method = request.method;
  if (method == "initialize") return Initialize(request.params);
  if (method == "ping") return Json::object();
  if (method == "logging/setLevel") return SetLevel(request.params);
  const bool begins = method == "resources/subscribe";
  if (offer_.subscribe && (begins || method == "resources/unsubscribe"))
    return Subscribe(request.params, begins);
  return Refuse(RpcCode::kMethodNotFound, "there is no method '" + method + "'");
}

Session::Answer Session::Initialize(const Json& params) {
  if (!Member(params, "protocolVersion").is_string())
    return Refuse(RpcCode::kInvalidParams, "'protocolVersion' is missing");
  if (initialized_) return Refuse(RpcCode::kInvalidRequest, "the session has begun already");
  initialized_ = true;
  const Json capabilities = Member(params, "capabilities");
  if (capabilities.is_object()) client_capabilities_ = capabilities;
  return Json{{"protocolVersion", kStateful},
              {"capabilities", Capabilities(false)},
              {"serverInfo", ServerInfo()},
              {"instructions", offer_.instructions}};
}

Session::Answer Session::SetLevel(const Json& params) {
  const std::string level = TextMember(params, "level");
  if (std::ranges::find(kLogLevels, level) == std::end(kLogLevels))
    return Refuse(RpcCode::kInvalidParams, "'level' is none of the levels of a log");
  const std::scoped_lock lock(mutex_);
  log_level_ = level;
  return Json::object();
}

Session::Answer Session::Subscribe(const Json& params, bool begins) {
  const std::string uri = TextMember(params, "uri");
  if (uri.empty()) return Refuse(RpcCode::kInvalidParams, "'uri' is missing");
  const std::scoped_lock lock(mutex_);
  if (begins)
    subscribed_.insert(uri);
  else
    subscribed_.erase(uri);
  return Json::object();
}

Json Session::Discover() const {
  return {{"supportedVersions", Json::array({kStateless})},
          {"capabilities", Capabilities(true)},
          {"instructions", offer_.instructions}};
}

Json Session::Capabilities(bool stateless) const {
  Json capabilities{{"tools", Json::object()},
                    {"resources", Json::object()},
                    {"prompts", Json::object()},
                    {"completions", Json::object()}};
  if (stateless) return capabilities;
  capabilities["logging"] = Json::object();
  if (offer_.subscribe) capabilities["resources"]["subscribe"] = true;
  return capabilities;
}

Json Session::ServerInfo() const { return {{"name", offer_.name}, {"version", offer_.version}}; }

Session::Answer Session::CallTool(const Request& request, const CallContext& context) const {
  const std::string name = TextMember(request.params, "name");
  const auto tool = std::ranges::find(offer_.tools, name, &Tool::name);
  if (tool == offer_.tools.end())
    return Refuse(RpcCode::kInvalidParams, "there is no tool '" + name + "'");
  Json arguments = Member(request.params, "arguments");
  if (arguments.is_null()) arguments = Json::object();
  if (const Status fits = CheckSchema(tool->input_schema, arguments); !fits)
    return ToolResult(std::unexpected(fits.error()));
  const Result<Json> result = tool->call(arguments, context);
  return result && tool->whole_result ? *result : ToolResult(result);
}

Session::Answer Session::ListResources() const {
  const auto listed = offer_.resources->List();
  if (!listed) return Refuse(RpcCode::kInternal, listed.error().ToString());
  return ResourceList(*listed);
}

Session::Answer Session::ReadResource(const Request& request) const {
  const std::string uri = TextMember(request.params, "uri");
  const auto found = offer_.resources->Read(uri);
  if (!found)
    return Refuse(request.stateless ? RpcCode::kInvalidParams : RpcCode::kResourceNotFound,
                  found.error().ToString(), {{"uri", uri}});
  return ContentsOf(uri, *found);
}

Session::Answer Session::GetPrompt(const Request& request, const CallContext& context) const {
  const std::string name = TextMember(request.params, "name");
  const auto prompt = std::ranges::find(offer_.prompts, name, &Prompt::name);
  if (prompt == offer_.prompts.end())
    return Refuse(RpcCode::kInvalidParams, "there is no prompt '" + name + "'");
  const auto arguments = PromptArguments(*prompt, Member(request.params, "arguments"));
  if (!arguments) return std::unexpected(arguments.error());
  if (prompt->messages) {
    const Result<Json> messages = prompt->messages(*arguments, context);
    if (!messages) return Refuse(RpcCode::kInternal, messages.error().ToString());
    return Json{{"description", prompt->description}, {"messages", *messages}};
  }
  return Json{
      {"description", prompt->description},
      {"messages",
       Json::array({{{"role", "user"},
                     {"content", {{"type", "text"}, {"text", prompt->text(*arguments)}}}}})}};
}

Session::Answer Session::Complete(const Json& params) const {
  const Json subject = Member(params, "ref");
  const Json argument = Member(params, "argument");
  std::string name = TextMember(subject, "name");
  if (name.empty()) name = TextMember(subject, "uri");
  if (name.empty() || TextMember(argument, "name").empty())
    return Refuse(RpcCode::kInvalidParams, "'ref' and 'argument' with its name are needed");
  std::vector<std::string> values;
  if (offer_.values) values = offer_.values(name, TextMember(argument, "name"));
  return Completion(values, TextMember(argument, "value"));
}

}  // namespace atunner::mcp
