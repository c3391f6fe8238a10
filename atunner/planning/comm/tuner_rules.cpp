#include "atunner/planning/comm/tuner_rules.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "atunner/planning/cells.h"

namespace atunner::planning {
namespace {

constexpr size_t kFewestCells = 8, kMostCells = 10;

std::unexpected<Error> Wrong(size_t line, const std::string& what) {
  return Invalid(what, "line " + std::to_string(line),
                 "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks"
                 "[,numPipeOps[,regBuff]]");
}

Result<TunerRule> RuleOf(std::string_view line, size_t number) {
  const auto cells = Cells(line);
  if (cells.size() < kFewestCells || cells.size() > kMostCells)
    return Wrong(number, "a rule has 8 to 10 fields");
  const auto collective = CollectiveOf(cells[0]);
  const auto algorithm = AlgorithmOf(cells[3]);
  const auto protocol = ProtocolOf(cells[4]);
  if (!collective) return Wrong(number, "unknown collective '" + std::string(cells[0]) + "'");
  if (!algorithm) return Wrong(number, "unknown algorithm '" + std::string(cells[3]) + "'");
  if (!protocol) return Wrong(number, "unknown protocol '" + std::string(cells[4]) + "'");
  const auto least = NumberOf<uint64_t>(cells[1]), most = NumberOf<uint64_t>(cells[2]);
  if (!least || !most || *least > *most) return Wrong(number, "not a range of bytes");
  std::array<int, 5> rest = {-1, -1, -1, -1, -1};  // channels, nodes, ranks, operations, registered
  for (size_t i = 5; i < cells.size(); ++i) {
    const auto value = NumberOf<int>(cells[i]);
    if (!value || *value < -1)
      return Wrong(number, "'" + std::string(cells[i]) + "' is neither a count nor -1");
    rest[i - 5] = *value;
  }
  return TunerRule{*collective, *least,  *most,   {*algorithm, *protocol, rest[0]},
                   rest[1],     rest[2], rest[3], rest[4]};
}

bool Fits(int rule, int value) { return rule == -1 || rule == value; }

}  // namespace

bool TunerRule::Matches(const CommCall& call) const {
  return collective == call.collective && min_bytes <= call.bytes && call.bytes <= max_bytes &&
         Fits(nodes, call.nodes) && Fits(ranks, call.ranks) && Fits(pipe_ops, call.pipe_ops) &&
         Fits(registered, call.registered);
}

Result<std::vector<TunerRule>> ReadTunerRules(std::string_view text) {
  std::vector<TunerRule> rules;
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = Trimmed(text.substr(at, end - at));
    at = end + 1;
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    ATUNNER_TRY(const TunerRule rule, RuleOf(line, number));
    rules.push_back(rule);
  }
  return rules;
}

std::string TunerRulesText(const std::vector<TunerRule>& rules) {
  std::string text =
      "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,"
      "regBuff\n";
  for (const TunerRule& rule : rules) {
    text.append(Name(rule.collective)).append(",");
    text += std::to_string(rule.min_bytes) + "," + std::to_string(rule.max_bytes) + ",";
    text.append(Name(rule.choice.algorithm)).append(",");
    text.append(Name(rule.choice.protocol));
    for (const int value :
         {rule.choice.channels, rule.nodes, rule.ranks, rule.pipe_ops, rule.registered})
      text += "," + std::to_string(value);
    text += "\n";
  }
  return text;
}

const TunerRule* FindTunerRule(const std::vector<TunerRule>& rules, const CommCall& call) {
  const auto found = std::ranges::find_if(rules, [&](const auto& r) { return r.Matches(call); });
  return found == rules.end() ? nullptr : &*found;
}

}  // namespace atunner::planning
