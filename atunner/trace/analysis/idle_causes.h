// Splits a gap of a GPU by what the host did meanwhile.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "atunner/trace/analysis/device_time.h"
#include "atunner/trace/analysis/event_index.h"

namespace atunner::trace {

class IdleCauses {
 public:
  explicit IdleCauses(const EventIndex& index);

  /// Sets the causes of a gap; they add up to its length.
  void Explain(Gap& gap) const;

 private:
  /// What a thread did: a union for each cause that can be seen on the host.
  struct ThreadTime {
    std::array<IntervalSet, kIdleCauses> causes;
    IntervalSet waits;  ///< synchronisations and blocking copies
  };
  void AddThread(uint32_t track, const std::vector<uint32_t>& events);
  const ThreadTime* ThreadOf(const Gap& gap) const;

  const EventIndex& index_;
  std::map<uint32_t, ThreadTime> threads_;
  const ThreadTime* main_ = nullptr;  ///< the thread that submits most
};

}  // namespace atunner::trace
