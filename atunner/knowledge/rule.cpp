#include "atunner/knowledge/rule.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace atunner::knowledge {
namespace {

constexpr std::array<std::string_view, 14> kBottlenecks = {
    "memory",  "l2",      "shared",    "arithmetic", "tensor", "special", "issue",
    "latency", "barrier", "occupancy", "registers",  "fetch",  "launch",  "divergence"};

constexpr Rule kRules[] = {
#define ATUNNER_RULE(id, when, parameters, move, weight, page, idea, effect) \
  {id, when, parameters, Move::move, weight, page, idea, effect},
#include "atunner/knowledge/rules.def"
#undef ATUNNER_RULE
};

/// Calls `use` with each word of a list separated by blanks; true once `use` is true.
template <class Use>
bool AnyWord(std::string_view list, Use use) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    if (end > 0 && use(list.substr(0, end))) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

Json Words(std::string_view list) {
  Json words = Json::array();
  AnyWord(list, [&](std::string_view word) {
    words.push_back(word);
    return false;
  });
  return words;
}

}  // namespace

std::span<const std::string_view> Bottlenecks() { return kBottlenecks; }

std::string_view Name(Move move) {
  static constexpr std::string_view kNames[] = {"larger", "smaller", "other"};
  return kNames[static_cast<size_t>(move)];
}

bool Rule::HelpsAgainst(std::string_view bottleneck) const {
  return AnyWord(when, [&](std::string_view word) { return word == "any" || word == bottleneck; });
}

bool Rule::IsAbout(std::string_view parameter) const {
  return AnyWord(parameters, [&](std::string_view word) {
    if (!word.ends_with('*')) return word == parameter;
    return parameter.starts_with(word.substr(0, word.size() - 1));
  });
}

std::span<const Rule> Rules() { return kRules; }

const Rule* FindRule(std::string_view id) {
  const auto found = std::ranges::find(kRules, id, &Rule::id);
  return found == std::end(kRules) ? nullptr : found;
}

Json ToJson(const Rule& rule) {
  return {{"id", rule.id},           {"when", Words(rule.when)},
          {"idea", rule.idea},       {"parameters", Words(rule.parameters)},
          {"move", Name(rule.move)}, {"effect", rule.effect},
          {"weight", rule.weight},   {"page", rule.page}};
}

}  // namespace atunner::knowledge
