#include "atunner/importers/aten/aten_table.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string>

#include "atunner/importers/aten/builders.h"

namespace atunner::importers {
namespace {

std::string_view Trimmed(std::string_view text) {
  const size_t first = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

/// A default as Python writes it: None, True, 0, 1e-5, 'none', [], [0, 1].
Argument Fallback(std::string_view text) {
  if (text == "None") return {};
  if (text == "True" || text == "False") return text == "True";
  if (text.starts_with('\'')) return std::string(text.substr(1, text.size() - 2));
  if (text.starts_with('[')) {
    std::vector<int64_t> list;
    for (size_t at = 1; at + 1 < text.size(); ++at) {
      int64_t value = 0;
      const auto [end, error] = std::from_chars(&text[at], text.data() + text.size(), value);
      ATUNNER_CHECK(error == std::errc());
      list.push_back(value);
      at = static_cast<size_t>(end - text.data());
    }
    return list;
  }
  if (text.find_first_of(".e") != std::string_view::npos) return std::stod(std::string(text));
  return int64_t{std::stoll(std::string(text))};
}

/// "self, other, *, alpha=1". Commas inside of brackets do not separate.
std::vector<Parameter> ParametersOf(std::string_view signature) {
  std::vector<Parameter> parameters;
  for (size_t at = 0; at < signature.size();) {
    size_t end = at;
    for (int depth = 0; end < signature.size() && (depth > 0 || signature[end] != ','); ++end)
      depth += signature[end] == '[' ? 1 : signature[end] == ']' ? -1 : 0;
    const std::string_view item = Trimmed(signature.substr(at, end - at));
    at = end + 1;
    if (item == "*") continue;
    const size_t equals = item.find('=');
    Parameter& parameter = parameters.emplace_back();
    parameter.name = item.substr(0, equals);
    if (equals != std::string_view::npos) parameter.fallback = Fallback(item.substr(equals + 1));
  }
  return parameters;
}

const std::map<std::string_view, AtenOperator>& Table() {
  static const std::map<std::string_view, AtenOperator> table = [] {
    std::map<std::string_view, AtenOperator> made;
    const auto add = [&](std::string_view target, std::string_view signature, BuildAten build,
                         std::string_view text) {
      made.emplace(target, AtenOperator{target, ParametersOf(signature), build, text});
    };
#define ATUNNER_ATEN(target, signature, build, text) add(target, signature, build, text);
#include "atunner/importers/aten/aten.def"
#undef ATUNNER_ATEN
    return made;
  }();
  return table;
}

}  // namespace

const AtenOperator* FindAten(std::string_view target) {
  const auto at = Table().find(target);
  return at == Table().end() ? nullptr : &at->second;
}

std::vector<std::string_view> AtenTargets() {
  std::vector<std::string_view> targets;
  for (const auto& [target, row] : Table()) targets.push_back(target);
  return targets;
}

}  // namespace atunner::importers
