#include "atunner/mcp/protocol/message.h"

#include <fmt/format.h>

namespace atunner::mcp {
namespace {

bool IsId(const Json& value) { return value.is_string() || value.is_number_integer(); }

std::unexpected<RpcError> NoMessage(std::string what, const Json& id) {
  return std::unexpected(RpcError{RpcCode::kInvalidRequest, std::move(what), nullptr, id});
}

/// The id to answer with, null where there is none that can be used.
Json IdOf(const Json& json) {
  const auto id = json.find("id");
  return id != json.end() && IsId(*id) ? *id : Json();
}

std::expected<Message, RpcError> MessageOf(const Json& json) {
  const Json id = IdOf(json);
  if (json.value("jsonrpc", Json()) != "2.0") return NoMessage("'jsonrpc' must be \"2.0\"", id);
  Message message;
  message.answer = json.contains("result") || json.contains("error");
  if (message.answer) {
    if (!id.is_null()) message.id = id;
    message.result = Member(json, "result");
    return message;
  }
  const auto method = json.find("method");
  if (method == json.end() || !method->is_string()) return NoMessage("'method' is missing", id);
  message.method = *method;
  if (json.contains("id")) {
    if (!IsId(json["id"])) return NoMessage("'id' must be a string or an integer", id);
    message.id = json["id"];
  }
  if (const auto params = json.find("params"); params != json.end()) {
    if (!params->is_object())
      return std::unexpected(
          RpcError{RpcCode::kInvalidParams, "'params' must be an object", nullptr, id});
    message.params = *params;
  }
  return message;
}

}  // namespace

std::expected<Message, RpcError> ParseMessage(std::string_view text) {
  if (text.size() > kLargestMessage)
    return NoMessage(fmt::format("a message has at most {} bytes", kLargestMessage), Json());
  const auto json = ParseJson(text, "message");
  if (!json) return std::unexpected(RpcError{RpcCode::kParse, json.error().what, nullptr, nullptr});
  if (!json->is_object()) return NoMessage("a message is one JSON object", Json());
  return MessageOf(*json);
}

std::string ResultText(const Json& id, const Json& result) {
  return DumpJson({{"jsonrpc", "2.0"}, {"id", id}, {"result", result}});
}

std::string ErrorText(const RpcError& error) {
  Json json{{"code", static_cast<int>(error.code)}, {"message", error.message}};
  if (!error.data.is_null()) json["data"] = error.data;
  return DumpJson({{"jsonrpc", "2.0"}, {"id", error.id}, {"error", std::move(json)}});
}

std::string NotificationText(std::string_view method, const Json& params) {
  return DumpJson({{"jsonrpc", "2.0"}, {"method", method}, {"params", params}});
}

std::string QuestionText(const std::string& id, std::string_view method, const Json& params) {
  return DumpJson({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}});
}

Json Member(const Json& object, std::string_view name) {
  if (!object.is_object()) return {};
  const auto found = object.find(name);
  return found == object.end() ? Json() : *found;
}

std::string TextMember(const Json& object, std::string_view name) {
  const Json value = Member(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

}  // namespace atunner::mcp
