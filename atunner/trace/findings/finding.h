// Advice: what holds a run back, by which evidence, what it costs, and what to do.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/trace/analysis/analysis.h"
#include "atunner/trace/analysis/ranks.h"

namespace atunner::trace {

struct Finding {
  std::string rule;      ///< name of the rule: "data_loading"
  std::string title;     ///< "The GPU waits for data"
  std::string evidence;  ///< the numbers of this trace
  /// Share of the window that would be gained if the cause were gone, 0 to 1: an upper bound, since
  /// other work may come into its place. 0 = cannot be said.
  double gain = 0;
  std::string action;  ///< what to do
  std::string kernel;  ///< a kernel to hand to `atunner optimize`; "" = none
};

struct FindingInput {
  const Analysis& analysis;
  const RankComparison* ranks = nullptr;  ///< nullptr for a single trace
};

/// Each rule looks for one thing; nullopt if it is not there.
struct Rule {
  std::string_view name;
  std::string_view meaning;  ///< one line, for documentation
  std::optional<Finding> (*find)(const FindingInput&);
};

std::span<const Rule> IdleRules();
std::span<const Rule> KernelRules();
std::span<const Rule> OperatorRules();
std::span<const Rule> CopyRules();
std::span<const Rule> CommunicationRules();
std::span<const Rule> RunRules();

std::vector<Rule> AllRules();
/// What the rules found, largest gain first.
std::vector<Finding> FindAll(const FindingInput& input);

}  // namespace atunner::trace
