// The state of checking one candidate; only for the files that implement Verifier.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "atunner/verify/verifier.h"

namespace atunner {

/// What one launch of the candidate works with. Of all this only the inputs may show in its
/// results.
struct Verifier::Run {
  LoadedModule& module;
  const TaskBuffers& buffers;  ///< hold the drawn inputs
  BoundPlan& plan;             ///< for `buffers`
  Poison poison;               ///< of outputs and workspaces
  uint64_t block_order = 0;    ///< LaunchOptions::block_order
};

/// State of checking one candidate.
struct Verifier::Session {
  const CandidateKernel& candidate;
  std::unique_ptr<LoadedModule> module;
  VerifyLevel level = VerifyLevel::kComplete;
  /// Another instance of the module, for repeated runs; loaded when the first needs it
  std::unique_ptr<LoadedModule> second_module;
  Verdict verdict;
  bool in_part = false;                     ///< the task's own size is checked by OwnSizeCheck
  std::optional<OwnSizeFindings> own_size;  ///< of the case of which most was compared
  std::vector<Case> skipped;  ///< cases that prove nothing: a constant or a copy would pass
  bool run_skipped = false;   ///< run such cases too

  /// True if the outputs at that size were compared with a reference on inputs that prove
  /// something.
  bool HasOracleCheck(const Dims& dims) const {
    return std::ranges::any_of(verdict.checks, [&](const CheckRecord& record) {
      return record.check == "oracle" && record.dims == dims && !OnlyRefutes(record.family);
    });
  }

  /// The same for inputs that are not chosen for certain values, so that errors anywhere show.
  bool HasGeneralCheck(const Dims& dims) const {
    return std::ranges::any_of(verdict.checks, [&](const CheckRecord& record) {
      return record.check == "oracle" && record.dims == dims && IsGeneral(record.family);
    });
  }

  /// Why passing all checks proves nothing; nullopt if it does. `last_size_proven`: the last size
  /// had an oracle check before the skipped cases ran. Undetermined outputs of a few numbers at a
  /// small size are no obstacle, since the last size decides.
  std::optional<std::string> WhyInconclusive(const std::vector<Dims>& sizes,
                                             bool last_size_proven) const {
    const auto is_last = [&](const Case& one) { return one.dims == sizes.back(); };
    if (!last_size_proven && std::ranges::any_of(skipped, is_last))
      return "on all inputs most of the result depends on decisions that rounding errors can turn: "
             "nothing "
             "can be compared";
    if (std::ranges::none_of(sizes, [&](const Dims& dims) { return HasOracleCheck(dims); }))
      return "even the baseline kernel overflows its type on all inputs: nothing can be compared";
    return std::nullopt;
  }

  /// Records the kinds of hazards that are not searched for. `hazards`: Verifier::hazards_.
  void StateHazards(uint8_t hazards, const Dims& dims) {
    const auto state = [&](HazardGroup group, const char* name) {
      if ((hazards & static_cast<uint8_t>(group)) != 0) return;
      verdict.checks.push_back(
          {.check = "hazards",
           .dims = dims,
           .passed = true,
           .detail = fmt::format("{} are not searched for: the kernel as given has them", name)});
    };
    state(HazardGroup::kRace, "races");
    state(HazardGroup::kInit, "reads of unwritten memory");
  }

  /// Records that nothing was compared on the inputs of a case, and why.
  void RecordSkipped(const Case& one, std::string why) {
    verdict.checks.push_back({.check = "not compared",
                              .family = std::string(Name(one.instance.family)),
                              .dims = one.dims,
                              .passed = true,
                              .detail = std::move(why)});
  }

  /// Records a check; false when it failed, with the verdict set.
  bool Record(const char* check, const Case& one, VerdictKind kind, std::string detail) {
    CheckRecord record{.check = check,
                       .family = std::string(Name(one.instance.family)),
                       .dims = one.dims,
                       .detail = detail};
    record.passed = kind == VerdictKind::kCorrect;
    if (one.instance.mutated)
      record.family += one.instance.family == InputFamily::kNan ? ", in the second input"
                                                                : ", one element changed";
    verdict.checks.push_back(std::move(record));
    if (kind == VerdictKind::kCorrect) return true;
    verdict.kind = kind;
    verdict.reason = fmt::format("{} ({} inputs): {}", check, verdict.checks.back().family, detail);
    return false;
  }
};

}  // namespace atunner
