// What ncu measured of a program's kernels, in the vocabulary of counter.def.
#pragma once

#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/evidence/classify.h"
#include "atunner/evidence/ncu_csv.h"
#include "atunner/model/json/json.h"

namespace atunner::jobs {

struct MeasuredProfile {
  evidence::MeasuredLaunch launch;
  std::vector<evidence::Finding> findings;  ///< the first is the bottleneck; without gains
};

/// Reads what `ncu --csv` printed. kInvalidInput for another file.
Result<std::vector<MeasuredProfile>> ReadNcu(const Path& file);

Json ToJson(const MeasuredProfile& profile);

}  // namespace atunner::jobs
