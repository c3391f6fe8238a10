// A policy trained offline by proximal policy optimisation (Schulman et al. 2017). It chooses among
// candidates by features that have the same meaning in every space. replay/ppo_training.h trains
// it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "atunner/search/strategies/strategy.h"
#include "atunner/search/surrogate/mlp.h"

namespace atunner {

inline constexpr size_t kPolicyFeatures = 15;
inline constexpr size_t kPolicyHidden = 16;

using PolicyFeatures = std::array<float, kPolicyFeatures>;

struct Policy {
  /// A candidate's score: the policy is their softmax
  Mlp actor{kPolicyFeatures, kPolicyHidden, {}};
  /// The one that is built in (ppo_weights.inc).
  static const Policy& BuiltIn();
};

/// One recorded decision, for training.
struct PolicyStep {
  std::vector<PolicyFeatures> candidates;
  size_t chosen = 0;
};

/// Proposes the candidate with the highest score. With `trace`, draws one from the policy instead
/// and records the decision there. `policy` (unless it is the options' own) and `trace` must
/// outlive the strategy.
std::unique_ptr<Strategy> MakePolicySearch(std::string name,
                                           std::shared_ptr<const SpaceIndex> index,
                                           SearchOptions options, const Policy& policy,
                                           std::vector<PolicyStep>* trace);

std::unique_ptr<Strategy> MakePpo(std::string name, std::shared_ptr<const SpaceIndex> index,
                                  SearchOptions options);

}  // namespace atunner
