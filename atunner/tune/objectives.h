// The objectives that a run can minimise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/judge/judge.h"
#include "atunner/model/trial/trial.h"

namespace atunner {

/// How much a tuning session does for its result.
enum class Thoroughness : uint8_t {
  kSearch,      ///< a search; the best are verified again with new inputs and compared
  kFirstRight,  ///< the first proposal that is right, verified once; on a GPU it is not timed
  kUnchecked,   ///< the first proposal that compiles; its verdict says that nothing was checked
};

enum class Objective : uint8_t { kTime, kMemory, kEnergy };
std::string_view Name(Objective objective);  // "time", "memory", "energy"

/// "memory", "time,memory": the first one decides who wins. kInvalidInput lists the objectives.
Result<std::vector<Objective>> ParseObjectives(std::string_view text);

/// ns, bytes (at least 1), or joules of one run; nullopt when the trial failed.
std::optional<double> ValueOf(const Trial& trial, Objective objective);
/// The values of all objectives, in order; empty when one is missing.
std::vector<double> ValuesOf(const Trial& trial, const std::vector<Objective>& objectives);

/// Standard error of a trial's time over the time, from the 95 % interval of its median; an
/// estimate is exact.
double RelativeError(const Trial& trial);

/// Trial::memory_bytes of a candidate at the task's sizes; 0 where its launches cannot be computed.
int64_t MemoryOf(const CandidateKernel& candidate, const KernelSpec& spec);

/// The Pareto front: indices into `trials`, ordered by the first objective. Trials with the binary
/// of another one are left out.
std::vector<size_t> FrontOf(const std::vector<Trial>& trials,
                            const std::vector<Objective>& objectives);

}  // namespace atunner
