// Ideas and versions. An idea is a change that may make a kernel faster, in words and as conditions
// on its parameters. A version is a kernel that an idea gave and that was kept.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/model/json/json.h"
#include "atunner/model/trial/trial.h"

namespace atunner::agents {

struct Idea {
  std::string id;  ///< "r2.3": the third idea of round 2; "r0.0" is the template's own choice
  int round = 0;
  std::string title;     ///< "larger tiles: tile_m > 64"
  std::string proposer;  ///< "default", "rule:larger-tiles", "combine" or "llm:MODEL"
  std::string why;       ///< the bottleneck that it is against
  std::string effect;    ///< expected
  std::string page;      ///< of the handbook, or ""
  std::string parent;    ///< id of the idea whose version it changes; "" for the first
  std::vector<std::string> conditions;  ///< on parameters; none for an idea of whole kernels
  double score = 0;                     ///< by which the ideas of a round were ranked

  // The outcome:
  std::string status = "open";          ///< "open", "kept", "dropped", "failed" (no correct kernel)
  std::string reason;                   ///< of the status, one sentence
  std::vector<std::string> candidates;  ///< ids of what was judged
  std::string best;                     ///< id of the fastest correct one, or ""
  std::optional<double> best_ns;
  std::optional<double> parent_ns;  ///< time of the version that it began with
};

struct Version {
  std::string idea;  ///< id
  Trial trial;       ///< with candidate, verdict and time
  double ns() const { return trial.ObjectiveNs().value_or(0); }
};

Json ToJson(const Idea& idea);
Result<Idea> IdeaFromJson(const Json& json);
Result<std::vector<Idea>> IdeasFromJson(const Json& json);
Json ToJson(const Version& version);
Result<std::vector<Version>> VersionsFromJson(const Json& json);

/// Replaces ideas of the same id and appends the others: a reducer.
Json MergedIdeas(Json ideas, const Json& update);

/// nullptr for an unknown id.
const Idea* FindIdea(const std::vector<Idea>& ideas, const std::string& id);
/// The fastest; nullptr if there is none.
const Version* Fastest(const std::vector<Version>& versions);
/// The version and its ancestors, the first one last. Empty for an unknown id.
std::vector<Idea> LineageOf(const std::vector<Idea>& ideas, const std::string& id);

}  // namespace atunner::agents
