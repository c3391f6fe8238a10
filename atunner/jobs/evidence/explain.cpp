#include "atunner/jobs/evidence/explain.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "atunner/rewrites/source/catalogue.h"

namespace atunner::jobs {
namespace {

/// The finding of the largest gain that the rewrite is against; nullptr if there is none.
const evidence::Finding* FindingFor(const rewrites::Rewrite& rewrite,
                                    const std::vector<evidence::Finding>& findings) {
  const evidence::Finding* best = nullptr;
  for (const evidence::Finding& finding : findings) {
    if (std::ranges::find(rewrite.removes, finding.bottleneck) == rewrite.removes.end()) continue;
    if (best == nullptr || finding.gain.value_or(1) > best->gain.value_or(1)) best = &finding;
  }
  return best;
}

Idea IdeaOf(const rewrites::Rewrite& rewrite, const evidence::Finding& finding,
            const Result<std::unique_ptr<const rewrites::Subject>>& subject) {
  Idea idea{std::string(rewrite.name),
            std::string(rewrite.reason),
            finding.bottleneck,
            finding.gain,
            "",
            {}};
  if (!subject) {
    idea.obstacle = subject.error().what;
    return idea;
  }
  auto proposals = rewrite.apply(**subject);
  if (proposals)
    idea.proposals = *std::move(proposals);
  else
    idea.obstacle = proposals.error().what;
  return idea;
}

}  // namespace

std::vector<Idea> IdeasFor(const RenderedKernel& kernel, const KernelSpec& spec,
                           const LaunchProfile& launch) {
  const auto subject = rewrites::Subject::Read(kernel, spec);
  std::vector<Idea> ideas;
  for (const rewrites::Rewrite& rewrite : rewrites::Catalogue()) {
    if (const evidence::Finding* finding = FindingFor(rewrite, launch.findings))
      ideas.push_back(IdeaOf(rewrite, *finding, subject));
  }
  std::ranges::stable_sort(ideas, {}, [](const Idea& idea) {
    return std::tuple(!idea.obstacle.empty(), -idea.expected_gain.value_or(1));
  });
  return ideas;
}

Result<Explanation> Explain(const ProfileRequest& request, Services& services,
                            const EventSink& events) {
  Explanation explanation;
  ATUNNER_TRY(explanation.profile, Profile(request, services, events));
  const KernelProfile& profile = explanation.profile;
  explanation.ideas = IdeasFor(profile.rendered, profile.spec, profile.Longest());
  return explanation;
}

Json ToJson(const Idea& idea) {
  Json forms = Json::array();
  for (const rewrites::Proposal& proposal : idea.proposals) forms.push_back(proposal.detail);
  return {{"rewrite", idea.rewrite},
          {"reason", idea.reason},
          {"removes", evidence::Name(idea.removes)},
          {"expected_gain", idea.expected_gain ? Json(*idea.expected_gain) : Json()},
          {"obstacle", idea.obstacle},
          {"forms", forms}};
}

Json ToJson(const Explanation& explanation) {
  Json json = ToJson(explanation.profile);
  json["ideas"] = Json::array();
  for (const Idea& idea : explanation.ideas) json["ideas"].push_back(ToJson(idea));
  return json;
}

}  // namespace atunner::jobs
