// The values between the steps from a request to a verified kernel, which can be looked at.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "atunner/model/json/json.h"

namespace atunner::jobs {

/// In the order in which they are made.
enum class Stage : uint8_t {
  kGraph,      ///< the task's tensor program
  kFused,      ///< the same after simplification and fusion of maps
  kPartition,  ///< the subgraphs that become kernels of their own
  kTemplate,   ///< the parameter space and its default configuration
  kSource,     ///< CUDA of the default configuration
  kPlan,       ///< its launches
  kPtx,        ///< what the compiler made of it
  kVerify,     ///< the judge's verdict on it
};
std::string_view Name(Stage stage);
/// nullopt for an unknown name.
std::optional<Stage> ParseStage(std::string_view name);
/// "graph, fused, …": for messages.
std::string StageNames();

/// The stages of a job to show.
struct Inspection {
  std::vector<Stage> dump;
  std::optional<Stage> stop_after;  ///< the job ends after this stage, without a search
  bool Empty() const { return dump.empty() && !stop_after; }
};

}  // namespace atunner::jobs
