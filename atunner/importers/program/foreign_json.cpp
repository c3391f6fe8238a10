#include "atunner/importers/program/foreign_json.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace atunner::importers {

Result<ForeignJson> ParseForeignJson(std::string_view text, const std::string& where) {
  constexpr int kDeepest = 256;
  bool too_deep = false;
  // What the callback refuses is left out, so that no deep value is ever made.
  const auto shallow = [&](int depth, ForeignJson::parse_event_t, ForeignJson&) {
    too_deep |= depth > kDeepest;
    return depth <= kDeepest;
  };
  ForeignJson json = ForeignJson::parse(text, shallow, /*allow_exceptions=*/false);
  if (too_deep) return Invalid("the JSON is nested more than 256 levels deep", where);
  if (json.is_discarded()) return Invalid("this is no JSON", where, "is the file truncated?");
  return json;
}

const ForeignJson& Member(const ForeignJson& json, const char* name) {
  static const ForeignJson null;
  if (!json.is_object()) return null;
  const auto at = json.find(name);
  return at == json.end() ? null : *at;
}

}  // namespace atunner::importers
