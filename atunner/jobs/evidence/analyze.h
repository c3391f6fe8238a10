// What a kernel's source and its compiled code show without running it.
#pragma once

#include <cstdint>

#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"
#include "atunner/model/json/json.h"
#include "atunner/rewrites/analysis/source_facts.h"

namespace atunner::jobs {

struct Analysis {
  std::string gpu;
  rewrites::SourceFacts facts;
  uint32_t registers = 0;
  uint32_t shared_bytes = 0;       ///< static, of a block
  uint32_t spill_bytes = 0;        ///< stored, of a thread
  std::vector<std::string> lines;  ///< of the source
};

/// kUnsupported for a kernel without source, or with several launches.
Result<Analysis> Analyze(const KernelRequest& request, Services& services, const EventSink& events);

Json ToJson(const Analysis& analysis);

}  // namespace atunner::jobs
