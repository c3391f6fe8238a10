#include "atunner/importers/program/foreign_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace atunner::importers {
namespace {

/// How deep brackets are nested, outside of strings. The library's destructor recurses, so this is
/// known before anything is parsed. (Its callbacks could refuse depth too, but look at all earlier
/// members again at each value.)
int DepthOf(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Result<ForeignJson> ParseForeignJson(std::string_view text, const std::string& where) {
  if (DepthOf(text) > 256) return Invalid("the JSON is nested more than 256 levels deep", where);
  ForeignJson json = ForeignJson::parse(text, nullptr, /*allow_exceptions=*/false);
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
