#include "atunner/agents/story.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace atunner::agents {
namespace {

std::string TimeText(const std::optional<double>& ns) {
  return ns ? fmt::format("{:.4g} us", *ns / 1e3) : "no time";
}

void AddRound(const RoundsState& state, const RoundRecord& round, std::string& text) {
  text += fmt::format(
      "\nRound {}. The fastest kernel takes {:.4g} us; its bottleneck is {} ({}).\n", round.round,
      round.before_ns / 1e3, round.bottleneck, round.evidence);
  for (const Idea& idea : state.ideas) {
    if (idea.round != round.round) continue;
    text += fmt::format("  {:<5} {:<7} {}\n", idea.id, idea.status, idea.title);
    text += fmt::format("        why: {}; expected: {}{}\n", idea.why, idea.effect,
                        idea.page.empty() ? "" : fmt::format(" (handbook: {})", idea.page));
    text += fmt::format("        outcome: {} of {} kernels; {}\n", TimeText(idea.best_ns),
                        idea.candidates.size(), idea.reason);
  }
  text += fmt::format("  {} ideas, {} kernels judged, {} kept; fastest now {:.4g} us{}\n",
                      round.ideas, round.kernels, round.kept.size(), round.after_ns / 1e3,
                      round.stop.empty() ? "" : "; stop: " + round.stop);
}

void AddBranch(const RoundsState& state, const std::string& parent, int depth, std::string& text) {
  for (const Idea& idea : state.ideas) {
    if (idea.status != "kept" || idea.parent != parent) continue;
    const double gain = idea.parent_ns && idea.best_ns ? *idea.parent_ns / *idea.best_ns : 1;
    text += fmt::format("{}{}  {}  {}{}\n", std::string(static_cast<size_t>(2 * depth), ' '),
                        idea.id, TimeText(idea.best_ns), idea.title,
                        idea.parent.empty() ? "" : fmt::format("  ({:.2f}x)", gain));
    AddBranch(state, idea.id, depth + 1, text);
  }
}

}  // namespace

std::string StoryOf(const RoundsState& state) {
  std::string text = fmt::format("{}\n{}\n", state.operator_summary, state.hardware_summary);
  for (const RoundRecord& round : state.rounds) AddRound(state, round, text);
  if (state.llm_tokens > 0)
    text += fmt::format("\nThe language model took {} tokens{}.\n", state.llm_tokens,
                        state.llm_stop.empty() ? "" : "; it was left out later: " + state.llm_stop);
  const Version* best = Fastest(state.versions);
  if (best == nullptr) return text + "\nNo correct kernel was found.\n";
  text += fmt::format("\nThe fastest kernel, {:.4g} us", best->ns() / 1e3);
  if (state.floor_ns > 0)
    text += fmt::format(", {:.0f} % of the roofline", 100 * state.floor_ns / best->ns());
  text += ", came by these ideas, the last one first:\n";
  for (const Idea& idea : LineageOf(state.ideas, best->idea))
    text += fmt::format("  {:<5} {}  {}\n", idea.id, TimeText(idea.best_ns), idea.title);
  return text;
}

std::string LineageText(const RoundsState& state) {
  std::string text;
  AddBranch(state, "", 0, text);
  return text.empty() ? "no kernel was kept\n" : text;
}

Json LineageJson(const RoundsState& state) {
  Json json = Json::array();
  for (const Idea& idea : state.ideas) {
    if (idea.status != "kept") continue;
    const auto version = std::ranges::find(state.versions, idea.id, &Version::idea);
    Json one = ToJson(idea);
    if (version != state.versions.end()) one["trial"] = version->trial.number;
    json.push_back(std::move(one));
  }
  return json;
}

}  // namespace atunner::agents
