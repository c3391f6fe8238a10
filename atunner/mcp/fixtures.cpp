#include "atunner/mcp/fixtures.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace atunner::mcp {
namespace {

constexpr std::chrono::milliseconds kPause{50};
/// A picture of one pixel, and a sound without samples.
constexpr const char* kPng =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg==";
constexpr const char* kWav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

constexpr const char* kEnums = R"({
  "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
  "titledSingle": {"type": "string", "oneOf": [{"const": "value1", "title": "First"},
                                               {"const": "value2", "title": "Second"}]},
  "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]},
  "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2"]}},
  "titledMulti": {"type": "array", "items": {"anyOf": [{"const": "value1", "title": "First"},
                                                       {"const": "value2", "title": "Second"}]}}})";
constexpr const char* kDefaults = R"({
  "name": {"type": "string", "default": "John Doe"},
  "age": {"type": "integer", "default": 30},
  "score": {"type": "number", "default": 95.5},
  "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
  "verified": {"type": "boolean", "default": true}})";
constexpr const char* kSchema2020 = R"({
  "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
  "$defs": {"address": {"$anchor": "addressDef", "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
  "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
    "contactMethod": {"type": "string", "enum": ["phone", "email"]},
    "phone": {"type": "string"}, "email": {"type": "string"}},
  "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
  "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
  "then": {"required": ["phone"]}, "else": {"required": ["email"]},
  "additionalProperties": false})";

using Call = Result<Json> (*)(const Json& arguments, const CallContext& context);

Json FixtureJson(const char* text) { return ParseJson(text, "fixture").value(); }
Json Text(const std::string& text) { return {{"type", "text"}, {"text", text}}; }
Json Image() { return {{"type", "image"}, {"data", kPng}, {"mimeType", "image/png"}}; }
Json Embedded(const std::string& uri, const char* type, const std::string& text) {
  return {{"type", "resource"}, {"resource", {{"uri", uri}, {"mimeType", type}, {"text", text}}}};
}
Json Content(Json::array_t items) { return {{"content", std::move(items)}}; }

/// A question for members of this schema (an object of properties), all of them required.
Question Form(const std::string& key, const std::string& message, const Json& properties) {
  Json required = Json::array();
  for (const auto& [name, schema] : properties.items()) required.push_back(name);
  return {key,
          "elicitation/create",
          {{"mode", "form"},
           {"message", message},
           {"requestedSchema",
            {{"type", "object"}, {"properties", properties}, {"required", required}}}}};
}

Question Sampling(const std::string& key, const std::string& prompt) {
  return {key,
          "sampling/createMessage",
          {{"messages", Json::array({{{"role", "user"}, {"content", Text(prompt)}}})},
           {"maxTokens", 100}}};
}

Question Roots() { return {"client_roots", "roots/list", Json::object()}; }

Json Strings(const char* name) { return {{name, {{"type", "string"}}}}; }

/// Asks once, and says what the answers were.
Result<Json> AskOnce(const CallContext& context, const std::vector<Question>& questions) {
  ATUNNER_TRY(const Json answers, context.ask(questions));
  return Content({Text("the client answered: " + DumpJson(answers))});
}

Result<Json> WithLog(const Json&, const CallContext& context) {
  for (const char* line :
       {"Tool execution started", "Tool processing data", "Tool execution completed"}) {
    context.log("info", line);
    std::this_thread::sleep_for(kPause);
  }
  return Content({Text("logged three lines")});
}

Result<Json> WithProgress(const Json&, const CallContext& context) {
  for (const double done : {0.0, 50.0, 100.0}) {
    context.progress(done, 100, "");
    std::this_thread::sleep_for(kPause);
  }
  return Content({Text("done")});
}

Result<Json> WithState(const Json&, const CallContext& context) {
  context.keep("state-ok");
  ATUNNER_RETURN_IF_ERROR(
      context.ask({Form("confirm", "Please confirm", {{"ok", {{"type", "boolean"}}}})}));
  return Content({Text(context.state)});
}

Result<Json> InTwoRounds(const Json&, const CallContext& context) {
  if (context.state.empty()) {
    context.keep("asked for a name");
    return context.ask({Form("step1", "Step 1: What is your name?", Strings("name"))});
  }
  if (context.state == "asked for a name") {
    context.keep("asked for a color");
    return context.ask({Form("step2", "Step 2: What is your favorite color?", Strings("color"))});
  }
  return Content({Text("both steps are done")});
}

Result<Json> WhatTheClientCan(const Json&, const CallContext& context) {
  std::vector<Question> questions;
  if (context.capabilities.contains("sampling"))
    questions.push_back(Sampling("capital_question", "What is the capital of France?"));
  if (context.capabilities.contains("elicitation"))
    questions.push_back(Form("user_name", "What is your name?", Strings("name")));
  return AskOnce(context, questions);
}

Result<Json> AskName(const Json&, const CallContext& context) {
  return AskOnce(context, {Form("user_name", "What is your name?", Strings("name"))});
}

void Add(Offer& offer, const char* name, Call call, Json schema = {{"type", "object"}}) {
  offer.tools.push_back(
      {name, name, "A fixture of the conformance suite.", std::move(schema), true, call, true});
}

void AddContentTools(Offer& offer) {
  Add(offer, "test_simple_text", [](const Json&, const CallContext&) -> Result<Json> {
    return Content({Text("This is a simple text response for testing.")});
  });
  Add(offer, "test_image_content",
      [](const Json&, const CallContext&) -> Result<Json> { return Content({Image()}); });
  Add(offer, "test_audio_content", [](const Json&, const CallContext&) -> Result<Json> {
    return Content({{{"type", "audio"}, {"data", kWav}, {"mimeType", "audio/wav"}}});
  });
  Add(offer, "test_embedded_resource", [](const Json&, const CallContext&) -> Result<Json> {
    return Content({Embedded("test://embedded-resource", "text/plain", "An embedded resource.")});
  });
  Add(offer, "test_multiple_content_types", [](const Json&, const CallContext&) -> Result<Json> {
    return Content({Text("Multiple content types test:"), Image(),
                    Embedded("test://mixed-content-resource", "application/json",
                             R"({"test":"data","value":123})")});
  });
  Add(offer, "test_error_handling", [](const Json&, const CallContext&) -> Result<Json> {
    return Fail(ErrorCode::kUnavailable, "This tool intentionally returns an error for testing");
  });
  Add(offer, "test_tool_with_logging", WithLog);
  Add(offer, "test_logging_tool", WithLog);
  Add(offer, "test_tool_with_progress", WithProgress);
  Add(
      offer, "json_schema_2020_12_tool",
      [](const Json&, const CallContext&) -> Result<Json> { return Content({Text("ok")}); },
      FixtureJson(kSchema2020));
}

void AddSessionQuestions(Offer& offer) {
  Add(offer, "test_sampling",
      [](const Json& arguments, const CallContext& context) {
        return AskOnce(context, {Sampling("answer", arguments["prompt"].get<std::string>())});
      },
      {{"type", "object"}, {"properties", Strings("prompt")}, {"required", {"prompt"}}});
  Add(offer, "test_elicitation",
      [](const Json& arguments, const CallContext& context) {
        return AskOnce(
            context, {Form("user", arguments["message"].get<std::string>(),
                           {{"username", {{"type", "string"}}}, {"email", {{"type", "string"}}}})});
      },
      {{"type", "object"}, {"properties", Strings("message")}, {"required", {"message"}}});
  Add(offer, "test_elicitation_sep1034_defaults", [](const Json&, const CallContext& context) {
    return AskOnce(context, {Form("user", "Your profile", FixtureJson(kDefaults))});
  });
  Add(offer, "test_elicitation_sep1330_enums", [](const Json&, const CallContext& context) {
    return AskOnce(context, {Form("user", "Your choices", FixtureJson(kEnums))});
  });
}

void AddStatelessQuestions(Offer& offer) {
  Add(offer, "test_missing_capability", [](const Json&, const CallContext& context) {
    return AskOnce(context, {Sampling("answer", "Are you there?")});
  });
  Add(offer, "test_streaming_elicitation", AskName);
  Add(offer, "test_input_required_result_elicitation", AskName);
  Add(offer, "test_input_required_result_sampling", [](const Json&, const CallContext& context) {
    return AskOnce(context, {Sampling("capital_question", "What is the capital of France?")});
  });
  Add(offer, "test_input_required_result_list_roots",
      [](const Json&, const CallContext& context) { return AskOnce(context, {Roots()}); });
  Add(offer, "test_input_required_result_request_state", WithState);
  Add(offer, "test_input_required_result_tampered_state", WithState);
  Add(offer, "test_input_required_result_multiple_inputs",
      [](const Json&, const CallContext& context) {
        context.keep("three questions");
        return AskOnce(context, {Form("user_name", "What is your name?", Strings("name")),
                                 Sampling("greeting", "Generate a greeting"), Roots()});
      });
  Add(offer, "test_input_required_result_multi_round", InTwoRounds);
  Add(offer, "test_input_required_result_capabilities", WhatTheClientCan);
}

Json UserMessages(Json::array_t contents) {
  Json messages = Json::array();
  for (Json& content : contents)
    messages.push_back({{"role", "user"}, {"content", std::move(content)}});
  return messages;
}

void AddPrompts(Offer& offer) {
  using Messages = Result<Json> (*)(const Json&, const CallContext&);
  const auto add = [&](const char* name, std::vector<PromptArgument> arguments, Messages messages) {
    offer.prompts.push_back(
        {name, name, "A fixture of the conformance suite.", std::move(arguments), {}, messages});
  };
  add("test_simple_prompt", {}, [](const Json&, const CallContext&) -> Result<Json> {
    return UserMessages({Text("This is a simple prompt for testing.")});
  });
  add("test_prompt_with_arguments",
      {{"arg1", "the first argument", true}, {"arg2", "the second argument", true}},
      [](const Json& arguments, const CallContext&) -> Result<Json> {
        return UserMessages(
            {Text("Prompt with arguments: arg1='" + arguments["arg1"].get<std::string>() +
                  "', arg2='" + arguments["arg2"].get<std::string>() + "'")});
      });
  add("test_prompt_with_embedded_resource", {{"resourceUri", "what to embed", true}},
      [](const Json& arguments, const CallContext&) -> Result<Json> {
        return UserMessages({Embedded(arguments["resourceUri"], "text/plain",
                                      "Embedded resource content for testing."),
                             Text("Please process the embedded resource above.")});
      });
  add("test_prompt_with_image", {}, [](const Json&, const CallContext&) -> Result<Json> {
    return UserMessages({Image(), Text("Please analyze the image above.")});
  });
  add("test_input_required_result_prompt", {},
      [](const Json&, const CallContext& context) -> Result<Json> {
        ATUNNER_TRY(const Json answers,
                    context.ask({Form("user_context", "What context should the prompt use?",
                                      Strings("context"))}));
        return UserMessages({Text("The context is " + DumpJson(answers))});
      });
}

class FixedResources : public Resources {
 public:
  Result<std::vector<ResourceInfo>> List() override {
    return std::vector<ResourceInfo>{
        {"test://static-text", "static text", "a text", "text/plain"},
        {"test://static-binary", "static binary", "a picture", "image/png"},
        {"test://watched-resource", "watched", "a text to subscribe to", "text/plain"}};
  }
  std::vector<ResourceInfo> Templates() override {
    return {{"test://template/{id}/data", "template", "data of an id", "application/json"}};
  }
  Result<ResourceText> Read(const std::string& uri) override {
    constexpr std::string_view kBegin = "test://template/";
    constexpr std::string_view kEnd = "/data";
    if (uri == "test://static-text" || uri == "test://watched-resource")
      return ResourceText{"text/plain", "This is the content of the static text resource."};
    if (uri == "test://static-binary") return ResourceText{"image/png", kPng, true};
    if (!uri.starts_with(kBegin) || !uri.ends_with(kEnd) ||
        uri.size() <= kBegin.size() + kEnd.size())
      return Fail(ErrorCode::kNotFound, "there is no such resource", uri);
    const std::string id = uri.substr(kBegin.size(), uri.size() - kBegin.size() - kEnd.size());
    return ResourceText{"application/json", DumpJson({{"id", id}, {"templateTest", true}})};
  }
};

Offer MakeFixtures() {
  static FixedResources resources;
  Offer offer;
  offer.name = "atunner-conformance";
  offer.version = ATUNNER_VERSION;
  offer.instructions = "Fixtures of the conformance suite.";
  offer.resources = &resources;
  offer.subscribe = true;
  offer.secret = RandomId(32);
  AddContentTools(offer);
  AddSessionQuestions(offer);
  AddStatelessQuestions(offer);
  AddPrompts(offer);
  return offer;
}

}  // namespace

const Offer& ConformanceFixtures() {
  static const Offer offer = MakeFixtures();
  return offer;
}

}  // namespace atunner::mcp
