#include "atunner/jobs/evidence/analyze.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "atunner/jobs/kernels/loaded_kernel.h"

namespace atunner::jobs {

Result<Analysis> Analyze(const KernelRequest& request, Services& services,
                         const EventSink& events) {
  ATUNNER_TRY(const Target target, TargetOf(request, services.devices));
  ATUNNER_TRY(const auto compiler, services.compilers.Open(kCompileTimeoutSeconds));
  ATUNNER_TRY(const LoadedKernel kernel, LoadKernel(request, target, *compiler, events));
  ATUNNER_TRY(const auto subject, rewrites::Subject::Read(kernel.rendered, kernel.spec));
  Analysis analysis;
  analysis.gpu = target.profile.name;
  analysis.facts = rewrites::FactsOf(*subject, kernel.rendered, kernel.spec);
  for (const KernelResources& resources : kernel.candidate.module.kernels) {
    analysis.registers = resources.registers;
    analysis.shared_bytes = resources.static_shared_bytes;
    analysis.spill_bytes = resources.spill_store_bytes;
  }
  std::istringstream source(kernel.source);
  for (std::string line; std::getline(source, line);) analysis.lines.push_back(std::move(line));
  return analysis;
}

Json ToJson(const Analysis& analysis) {
  const auto number = [](const std::optional<int64_t>& value) {
    return value ? Json(*value) : Json();
  };
  Json loops = Json::array(), accesses = Json::array();
  for (const rewrites::LoopFact& loop : analysis.facts.loops)
    loops.push_back({{"line", loop.line},
                     {"depth", loop.depth},
                     {"head", loop.head},
                     {"trips", number(loop.trips)}});
  for (const rewrites::AccessFact& access : analysis.facts.accesses)
    accesses.push_back({{"line", access.line},
                        {"array", access.array},
                        {"subscript", access.subscript},
                        {"store", access.store},
                        {"shared", access.shared},
                        {"pattern", rewrites::PatternOf(access)},
                        {"thread_stride", number(access.thread_stride)},
                        {"loop_stride", number(access.loop_stride)}});
  return {{"kernel", analysis.facts.kernel},
          {"target", analysis.gpu},
          {"registers", analysis.registers},
          {"shared_bytes", analysis.shared_bytes},
          {"spill_bytes", analysis.spill_bytes},
          {"loops", loops},
          {"accesses", accesses},
          {"barriers", analysis.facts.barriers},
          {"atomics", analysis.facts.atomics},
          {"doubles", analysis.facts.doubles}};
}

}  // namespace atunner::jobs
