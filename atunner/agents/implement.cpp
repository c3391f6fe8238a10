#include "atunner/agents/implement.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "atunner/model/expr/expr.h"

namespace atunner::agents {
namespace {

/// A parent's values as positions within the parameters' values.
std::vector<double> PositionsOf(const ParameterSpace& space, const Configuration& configuration) {
  std::vector<double> positions;
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    const auto& values = space.parameters[i].values;
    const auto found = std::ranges::find(values, configuration.values[i]);
    positions.push_back(found == values.end() ? 0 : static_cast<double>(found - values.begin()));
  }
  return positions;
}

}  // namespace

RestrictedSource::RestrictedSource(const ScheduleTemplate& schedule, const DeviceProfile& profile,
                                   SpaceIndex index, Provenance provenance,
                                   std::set<std::string> known)
    : schedule_(schedule),
      profile_(profile),
      index_(std::move(index)),
      provenance_(std::move(provenance)),
      known_(std::move(known)) {}

Result<std::unique_ptr<RestrictedSource>> RestrictedSource::Make(const ScheduleTemplate& schedule,
                                                                 const DeviceProfile& profile,
                                                                 const Idea& idea,
                                                                 const Candidate& parent,
                                                                 std::set<std::string> known) {
  if (parent.configuration() == nullptr)
    return Invalid("the parent is no configuration", "idea " + idea.id);
  ParameterSpace space = schedule.space();
  for (const std::string& condition : idea.conditions) {
    ATUNNER_TRY(Expr expression, Expr::Parse(condition));
    space.constraints.push_back({std::move(expression), "idea " + idea.id});
  }
  ATUNNER_TRY(SpaceIndex index, SpaceIndex::Build(space, schedule.spec().dims));
  Provenance provenance{idea.proposer, idea.id + ": " + idea.title, parent.id};
  const uint64_t nearest = index.Near(PositionsOf(space, *parent.configuration()));
  std::unique_ptr<RestrictedSource> source(new RestrictedSource(
      schedule, profile, std::move(index), std::move(provenance), std::move(known)));
  source->Queue(nearest);
  return source;
}

void RestrictedSource::Queue(uint64_t index) {
  if (index < index_.size() && queued_.insert(index).second) queue_.push_back(index);
}

void RestrictedSource::QueueNeighbours(uint64_t index) {
  std::vector<std::pair<double, uint64_t>> ranked;
  for (const uint64_t neighbour : index_.Neighbours(index, Neighbourhood::kAdjacent)) {
    const auto cost = schedule_.Cost(index_.At(neighbour), profile_);
    ranked.emplace_back(cost.value_or(std::numeric_limits<double>::infinity()), neighbour);
  }
  std::ranges::stable_sort(ranked, {}, &std::pair<double, uint64_t>::first);
  for (const auto& [cost, neighbour] : ranked) Queue(neighbour);
}

std::vector<Candidate> RestrictedSource::Ask(size_t n) {
  std::vector<Candidate> candidates;
  while (candidates.size() < n) {
    if (next_ == queue_.size()) {
      if (expanded_ == queue_.size()) break;
      QueueNeighbours(queue_[expanded_++]);
      continue;
    }
    Candidate candidate = MakeCandidate(schedule_.space(), index_.At(queue_[next_++]), provenance_);
    if (known_.insert(candidate.id.ToHex()).second) candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace atunner::agents
