// Kernels of an idea: configurations of the part of a space that the idea's conditions leave.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "atunner/agents/idea.h"
#include "atunner/model/schedule/schedule_template.h"
#include "atunner/search/candidate_source.h"
#include "atunner/search/space/space_index.h"

namespace atunner::agents {

/// Proposes first the valid configuration nearest to the parent, which changes least besides the
/// idea, then its neighbours, the cheapest first by the template's cost model.
class RestrictedSource : public CandidateSource {
 public:
  /// `schedule` must outlive the object. `known`: ids that are not proposed again. kInvalidInput
  /// when the conditions exclude every configuration.
  static Result<std::unique_ptr<RestrictedSource>> Make(const ScheduleTemplate& schedule,
                                                        const DeviceProfile& profile,
                                                        const Idea& idea, const Candidate& parent,
                                                        std::set<std::string> known);

  bool learns() const override { return false; }
  std::vector<Candidate> Ask(size_t n) override;
  void Tell(const CandidateResult&) override {}

 private:
  RestrictedSource(const ScheduleTemplate& schedule, const DeviceProfile& profile, SpaceIndex index,
                   Provenance provenance, std::set<std::string> known);
  void Queue(uint64_t index);
  void QueueNeighbours(uint64_t index);

  const ScheduleTemplate& schedule_;
  DeviceProfile profile_;
  SpaceIndex index_;
  Provenance provenance_;
  std::set<std::string> known_;
  std::vector<uint64_t> queue_;
  std::set<uint64_t> queued_;
  size_t next_ = 0;      ///< in queue_
  size_t expanded_ = 0;  ///< how many of the queue had their neighbours queued
};

}  // namespace atunner::agents
