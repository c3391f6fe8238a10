#include "atunner/agents/idea.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace atunner::agents {
namespace {

Json OptionalJson(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

std::optional<double> OptionalFrom(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

}  // namespace

Json ToJson(const Idea& idea) {
  return {{"id", idea.id},
          {"round", idea.round},
          {"title", idea.title},
          {"proposer", idea.proposer},
          {"why", idea.why},
          {"effect", idea.effect},
          {"page", idea.page},
          {"parent", idea.parent},
          {"conditions", idea.conditions},
          {"score", idea.score},
          {"status", idea.status},
          {"reason", idea.reason},
          {"candidates", idea.candidates},
          {"best", idea.best},
          {"best_ns", OptionalJson(idea.best_ns)},
          {"parent_ns", OptionalJson(idea.parent_ns)}};
}

Result<Idea> IdeaFromJson(const Json& json) {
  try {
    Idea idea;
    idea.id = json.at("id").get<std::string>();
    idea.round = json.value("round", 0);
    idea.title = json.value("title", "");
    idea.proposer = json.value("proposer", "");
    idea.why = json.value("why", "");
    idea.effect = json.value("effect", "");
    idea.page = json.value("page", "");
    idea.parent = json.value("parent", "");
    idea.conditions = json.value("conditions", std::vector<std::string>());
    idea.score = json.value("score", 0.0);
    idea.status = json.value("status", "open");
    idea.reason = json.value("reason", "");
    idea.candidates = json.value("candidates", std::vector<std::string>());
    idea.best = json.value("best", "");
    idea.best_ns = OptionalFrom(json, "best_ns");
    idea.parent_ns = OptionalFrom(json, "parent_ns");
    return idea;
  } catch (const Json::exception& error) {
    return Invalid(std::string("not a valid idea: ") + error.what());
  }
}

Result<std::vector<Idea>> IdeasFromJson(const Json& json) {
  std::vector<Idea> ideas;
  for (const Json& one : json) {
    ATUNNER_TRY(Idea idea, IdeaFromJson(one));
    ideas.push_back(std::move(idea));
  }
  return ideas;
}

Json ToJson(const Version& version) {
  return {{"idea", version.idea}, {"trial", atunner::ToJson(version.trial)}};
}

Result<std::vector<Version>> VersionsFromJson(const Json& json) {
  std::vector<Version> versions;
  for (const Json& one : json) {
    if (!one.is_object() || !one.contains("trial")) return Invalid("not a valid version");
    Version version;
    version.idea = one.value("idea", "");
    ATUNNER_TRY(version.trial, FromJson<Trial>(one["trial"]));
    versions.push_back(std::move(version));
  }
  return versions;
}

Json MergedIdeas(Json ideas, const Json& update) {
  for (const Json& idea : update) {
    const auto same = std::ranges::find_if(
        ideas, [&](const Json& other) { return other["id"] == idea["id"]; });
    if (same == ideas.end())
      ideas.push_back(idea);
    else
      *same = idea;
  }
  return ideas;
}

const Idea* FindIdea(const std::vector<Idea>& ideas, const std::string& id) {
  const auto found = std::ranges::find(ideas, id, &Idea::id);
  return found == ideas.end() ? nullptr : &*found;
}

const Version* Fastest(const std::vector<Version>& versions) {
  const Version* best = nullptr;
  for (const Version& version : versions) {
    if (version.ns() > 0 && (best == nullptr || version.ns() < best->ns())) best = &version;
  }
  return best;
}

std::vector<Idea> LineageOf(const std::vector<Idea>& ideas, const std::string& id) {
  std::vector<Idea> line;
  for (const Idea* at = FindIdea(ideas, id); at != nullptr && line.size() <= ideas.size();
       at = at->parent.empty() ? nullptr : FindIdea(ideas, at->parent))
    line.push_back(*at);
  return line;
}

}  // namespace atunner::agents
