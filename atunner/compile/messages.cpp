#include "atunner/compile/messages.h"

#include <nlohmann/json.hpp>

namespace atunner {

Json ToJson(const CompileRequest& request) {
  // A cubin or a comment in Latin-1 is not UTF-8, so the text is sent as Base64.
  SourceUnit source = request.source;
  const std::string text = Base64Encode(source.text);
  source.text.clear();
  return {{"source", ToJson(source)},
          {"text", text},
          {"entries", request.entries},
          {"arch", request.arch}};
}

Result<CompileRequest> RequestFromJson(const Json& json) try {
  CompileRequest request;
  ATUNNER_TRY(request.source, FromJson<SourceUnit>(json.at("source")));
  ATUNNER_TRY(request.source.text, Base64Decode(json.at("text").get<std::string>()));
  json.at("entries").get_to(request.entries);
  json.at("arch").get_to(request.arch);
  return request;
} catch (const Json::exception& error) {
  return Invalid(error.what(), "compile request");
}

Json ToJson(const CompileOutcome& outcome) {
  Json json{{"error", outcome.error}};
  if (outcome.timed_out) json["timed_out"] = true;
  if (outcome.crashed) json["crashed"] = true;
  if (outcome.module) json["module"] = ToJson(*outcome.module);
  return json;
}

Result<CompileOutcome> OutcomeFromJson(const Json& json) try {
  CompileOutcome outcome;
  json.at("error").get_to(outcome.error);
  outcome.timed_out = json.value("timed_out", false);
  outcome.crashed = json.value("crashed", false);
  if (json.contains("module")) {
    ATUNNER_TRY(outcome.module, FromJson<CompiledModule>(json["module"]));
  } else if (outcome.error.empty()) {
    return Invalid("neither a module nor an error", "compile outcome");
  }
  return outcome;
} catch (const Json::exception& error) {
  return Invalid(error.what(), "compile outcome");
}

}  // namespace atunner
