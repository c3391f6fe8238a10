#include "atunner/agents/propose.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "atunner/knowledge/rule.h"

namespace atunner::agents {
namespace {

using knowledge::Move;
using knowledge::Rule;

constexpr double kAgainstAnotherLimit = 0.35;  ///< share of a rule's weight that is left
constexpr double kOfLaterParents = 0.8;        ///< for each place of the parent in the ranking
constexpr double kUnknownParameter = 0.25;     ///< weight of a change that no rule is about
constexpr double kCombination = 1.2;
constexpr double kGain = 1.3;
constexpr double kLoss = 0.7;

bool IsNumber(const Value& value) {
  return std::holds_alternative<int64_t>(value) || std::holds_alternative<double>(value);
}

std::string Quoted(const Value& value) {
  if (std::holds_alternative<std::string>(value)) return "'" + ToString(value) + "'";
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "1" : "0";
  return ToString(value);
}

/// "tile_m > 64"; "" if no value of the parameter fits.
std::string ConditionOf(const Parameter& parameter, const Value& now, Move move) {
  if (parameter.values.size() < 2) return "";
  if (move == Move::kOther || !IsNumber(now))
    return move == Move::kOther ? fmt::format("{} != {}", parameter.name, Quoted(now)) : "";
  const bool larger = move == Move::kLarger;
  const bool fits = std::ranges::any_of(parameter.values, [&](const Value& value) {
    return larger ? ToDouble(value) > ToDouble(now) : ToDouble(value) < ToDouble(now);
  });
  return fits ? fmt::format("{} {} {}", parameter.name, larger ? ">" : "<", ToString(now)) : "";
}

/// Collects ideas, each pair of parent and conditions once.
class Collector {
 public:
  explicit Collector(const IdeaContext& context) : context_(context) {
    for (const Idea& idea : context.earlier) tried_.insert({idea.parent, idea.conditions});
  }

  void Add(Idea idea) {
    if (!tried_.insert({idea.parent, idea.conditions}).second) return;
    idea.round = context_.round;
    ideas_.push_back(std::move(idea));
  }
  /// The best, with at most two ideas of one proposer as long as there are others.
  std::vector<Idea> Best() {
    std::ranges::stable_sort(ideas_, std::greater<>(), &Idea::score);
    std::vector<Idea> best;
    std::vector<Idea> rest;
    for (Idea& idea : ideas_) {
      const auto same = std::ranges::count(best, idea.proposer, &Idea::proposer);
      (same < 2 ? best : rest).push_back(std::move(idea));
    }
    std::ranges::move(rest, std::back_inserter(best));
    if (best.size() > context_.most) best.resize(context_.most);
    for (size_t i = 0; i < best.size(); ++i)
      best[i].id = fmt::format("r{}.{}", context_.round, i + 1);
    return best;
  }

 private:
  const IdeaContext& context_;
  std::set<std::pair<std::string, std::vector<std::string>>> tried_;
  std::vector<Idea> ideas_;
};

Idea IdeaOfRule(const IdeaContext& context, const Rule& rule, const Version& parent,
                const std::string& condition) {
  const bool fits = rule.HelpsAgainst(context.performance.bottleneck);
  Idea idea;
  idea.proposer = "rule:" + std::string(rule.id);
  idea.title = fmt::format("{}: {}", rule.idea, condition);
  idea.why = fits ? "against " + context.performance.bottleneck
                  : "untried; it is not against " + context.performance.bottleneck;
  idea.effect = std::string(rule.effect);
  idea.page = std::string(rule.page);
  idea.parent = parent.idea;
  idea.conditions = {condition};
  idea.score = LearnedWeight(idea.proposer, rule.weight, context.earlier) *
               (fits ? 1 : kAgainstAnotherLimit);
  return idea;
}

void AddRules(const IdeaContext& context, const Version& parent, double share,
              Collector& collector) {
  const Configuration& now = parent.trial.configuration();
  const auto& parameters = context.space.parameters;
  for (size_t i = 0; i < parameters.size() && i < now.values.size(); ++i) {
    bool known = false;
    for (const Rule& rule : knowledge::Rules()) {
      if (!rule.IsAbout(parameters[i].name)) continue;
      known = true;
      const std::string condition = ConditionOf(parameters[i], now.values[i], rule.move);
      if (condition.empty()) continue;
      Idea idea = IdeaOfRule(context, rule, parent, condition);
      idea.score *= share;
      collector.Add(std::move(idea));
    }
    const std::string condition = ConditionOf(parameters[i], now.values[i], Move::kOther);
    if (known || condition.empty()) continue;
    Idea idea;
    idea.proposer = "vary:" + parameters[i].name;
    idea.title = fmt::format("another {}: {}", parameters[i].name, condition);
    idea.why = "no rule knows this parameter";
    idea.effect = parameters[i].meaning;
    idea.parent = parent.idea;
    idea.conditions = {condition};
    idea.score = share * LearnedWeight(idea.proposer, kUnknownParameter, context.earlier);
    collector.Add(std::move(idea));
  }
}

/// The parameters in which two configurations differ.
std::set<size_t> Changes(const Configuration& from, const Configuration& to) {
  std::set<size_t> changes;
  for (size_t i = 0; i < from.values.size() && i < to.values.size(); ++i) {
    if (from.values[i] != to.values[i]) changes.insert(i);
  }
  return changes;
}

/// The first parent with the changes that made another version faster than its own parent.
void AddCombinations(const IdeaContext& context, Collector& collector) {
  const Version& first = context.parents.front();
  if (first.trial.candidate.configuration() == nullptr) return;
  const Configuration& now = first.trial.configuration();
  for (size_t i = 1; i < context.parents.size(); ++i) {
    const Version& other = context.parents[i];
    if (other.trial.candidate.configuration() == nullptr) continue;
    const std::set<size_t> changes = Changes(now, other.trial.configuration());
    if (changes.size() < 2) continue;  // one change is that version itself
    Idea idea;
    idea.proposer = "combine";
    idea.title = "the best kernel with changes of " + other.idea;
    for (const size_t at : changes) {
      // Half of the changes at least: between the two kernels, nearer to the other one.
      if (idea.conditions.size() * 2 >= changes.size()) break;
      const Parameter& parameter = context.space.parameters[at];
      idea.conditions.push_back(
          fmt::format("{} == {}", parameter.name, Quoted(other.trial.configuration().values[at])));
    }
    idea.why = "both were faster than what they began with";
    idea.effect = "their gains may add up";
    idea.parent = first.idea;
    idea.score = LearnedWeight("combine", kCombination, context.earlier) *
                 (1 - 0.1 * static_cast<double>(i));
    collector.Add(std::move(idea));
  }
}

}  // namespace

double LearnedWeight(const std::string& proposer, double weight, const std::vector<Idea>& earlier) {
  for (const Idea& idea : earlier) {
    if (idea.proposer != proposer || idea.status == "open") continue;
    weight *= idea.status == "kept" ? kGain : kLoss;
  }
  return std::clamp(weight, 0.05, 1.5);
}

std::vector<Idea> ProposeIdeas(const IdeaContext& context) {
  Collector collector(context);
  double share = 1;
  for (const Version& parent : context.parents) {
    if (parent.trial.candidate.configuration() == nullptr) continue;
    AddRules(context, parent, share, collector);
    share *= kOfLaterParents;
  }
  if (context.parents.size() > 1) AddCombinations(context, collector);
  return collector.Best();
}

}  // namespace atunner::agents
